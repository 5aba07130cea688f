/* Walks the records of a batch (magic 2, uncompressed) without Python's lock.
 *
 * No Python.h: a plain shared library that walker.py calls through ctypes, so one build serves
 * every Python. walker_reference.py holds the same functions in Python: the specification, and
 * the tests hold the two equal on sound, mutated and truncated input.
 *
 * A record: size varint, then size bytes: attributes i8, timestamp delta varlong, offset delta
 * varint, key, value (varint size, negative for null, then bytes), header count varint, headers
 * (key as above but never null, value as above). Varints are zigzag, at most 5 or 10 bytes.
 */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* Raised whenever a signature or a struct below changes; walker.py refuses another version. */
enum { ABI_VERSION = 3 };

enum error { SOUND, EARLY_END, BAD_SIZE, BAD_RECORD, BAD_OFFSET, TRAILING_BYTES };

typedef struct {
    int64_t timestamp;
    int32_t record_at, offset_delta;
    int32_t key_at, key_size, value_at, value_size;
    int32_t headers_at, header_count;
} location;

typedef struct {
    int64_t min_timestamp, max_timestamp;
    int32_t max_timestamp_delta; /* offset delta of the first record that has it */
    int32_t error, error_index;
    int32_t keyless; /* records without a key */
    int32_t outside; /* records whose timestamp is neither -1 nor within the range given */
} walk_result;

typedef struct {
    int64_t timestamp;
    int32_t index;
    int32_t keyless; /* else it is the timestamp that is refused */
} fault;

typedef struct {
    const uint8_t *data;
    int32_t at, end;
} cursor;

/* Reads at most `bytes_max` bytes; false when the input ends first or the number does not. */
static inline int read_varint(cursor *c, int bytes_max, int64_t *out) {
    uint64_t raw = 0;
    for (int i = 0; i < bytes_max; i++) {
        if (c->at >= c->end) return 0;
        uint8_t byte = c->data[c->at++];
        raw |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            if (bytes_max == 5) raw &= 0xffffffffu;
            *out = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return 1;
        }
    }
    return 0;
}

static inline int skip_bytes(cursor *c, int32_t *at, int32_t *size) {
    int64_t length;
    if (!read_varint(c, 5, &length)) return 0;
    *at = c->at;
    *size = length < 0 ? -1 : (int32_t)length;
    if (length > c->end - c->at) return 0;
    if (length > 0) c->at += (int32_t)length;
    return 1;
}

static int skip_headers(cursor *c, int32_t count) {
    int32_t at, size;
    for (int32_t i = 0; i < count; i++) {
        if (!skip_bytes(c, &at, &size) || size < 0) return 0;
        if (!skip_bytes(c, &at, &size)) return 0;
    }
    return 1;
}

/* The fields after a record's size; the cursor ends with the record. */
static int read_body(cursor *c, int64_t base_timestamp, location *record) {
    int64_t delta, offset_delta, count;
    if (c->at >= c->end) return 0;
    c->at++; /* attributes: none is defined */
    if (!read_varint(c, 10, &delta) || !read_varint(c, 5, &offset_delta)) return 0;
    record->timestamp = (int64_t)((uint64_t)base_timestamp + (uint64_t)delta);
    record->offset_delta = (int32_t)offset_delta;
    if (!skip_bytes(c, &record->key_at, &record->key_size)) return 0;
    if (!skip_bytes(c, &record->value_at, &record->value_size)) return 0;
    if (!read_varint(c, 5, &count) || count < 0 || count > c->end - c->at) return 0;
    record->headers_at = c->at;
    record->header_count = (int32_t)count;
    return skip_headers(c, record->header_count) && c->at == c->end;
}

static enum error read_record(cursor *c, int64_t base_timestamp, location *record) {
    int64_t size;
    if (c->at >= c->end) return EARLY_END;
    record->record_at = c->at;
    if (!read_varint(c, 5, &size) || size < 0 || size > c->end - c->at) return BAD_SIZE;
    cursor body = {c->data, c->at, c->at + (int32_t)size};
    c->at = body.end;
    return read_body(&body, base_timestamp, record) ? SOUND : BAD_RECORD;
}

static inline int is_outside(int64_t timestamp, int64_t earliest, int64_t latest) {
    return timestamp != -1 && (timestamp < earliest || timestamp > latest);
}

EXPORT int32_t skylog_abi_version(void) { return ABI_VERSION; }

/* Checks `count` records that must fill the data. Offset deltas are 0, 1, 2, … when `dense`
 * (what producers send), else they only grow (what compaction leaves). `locations` is null or
 * has room for `count` records. */
EXPORT void skylog_walk(const uint8_t *data, int32_t size, int32_t count, int64_t base_timestamp,
                        int64_t earliest, int64_t latest, int32_t dense, walk_result *out,
                        location *locations) {
    cursor c = {data, 0, size};
    location record;
    int32_t last_delta = -1, index = 0;
    enum error error = SOUND;
    *out = (walk_result){.min_timestamp = INT64_MAX, .max_timestamp = INT64_MIN};
    for (; index < count; index++) {
        error = read_record(&c, base_timestamp, &record);
        if (error != SOUND) break;
        if (dense ? record.offset_delta != index : record.offset_delta <= last_delta) {
            error = BAD_OFFSET;
            break;
        }
        last_delta = record.offset_delta;
        if (locations) locations[index] = record;
        if (record.key_size < 0) out->keyless++;
        if (is_outside(record.timestamp, earliest, latest)) out->outside++;
        if (record.timestamp < out->min_timestamp) out->min_timestamp = record.timestamp;
        if (record.timestamp > out->max_timestamp || index == 0) {
            out->max_timestamp = record.timestamp;
            out->max_timestamp_delta = record.offset_delta;
        }
    }
    if (error == SOUND && c.at != c.end) error = TRAILING_BYTES;
    out->error = error;
    out->error_index = error == SOUND ? 0 : index;
}

/* Lists the first `room` records that have no key (where `keyed`) or a timestamp outside of the
 * range; stops at a broken record. Returns how many it listed. */
EXPORT int32_t skylog_find_faults(const uint8_t *data, int32_t size, int32_t count,
                                  int64_t base_timestamp, int64_t earliest, int64_t latest,
                                  int32_t keyed, fault *faults, int32_t room) {
    cursor c = {data, 0, size};
    location record;
    int32_t found = 0;
    for (int32_t index = 0; index < count && found < room; index++) {
        if (read_record(&c, base_timestamp, &record) != SOUND) break;
        int keyless = keyed && record.key_size < 0;
        if (keyless || is_outside(record.timestamp, earliest, latest))
            faults[found++] = (fault){record.timestamp, index, keyless};
    }
    return found;
}

/* Finds the first record at or after `target` whose offset delta is at least `delta_min`: 1 when
 * found, 0 when there is none, a negated error where the records are broken, with the index of the
 * broken one for an offset delta. */
EXPORT int32_t skylog_find_timestamp(const uint8_t *data, int32_t size, int32_t count,
                                     int64_t base_timestamp, int64_t target, int32_t delta_min,
                                     location *found) {
    cursor c = {data, 0, size};
    enum error error = SOUND;
    int32_t index = 0;
    for (; index < count; index++) {
        error = read_record(&c, base_timestamp, found);
        if (error != SOUND) break;
        if (found->timestamp >= target && found->offset_delta >= delta_min) return 1;
    }
    if (error == SOUND && c.at != c.end) error = TRAILING_BYTES;
    found->offset_delta = index;
    return -(int32_t)error;
}
