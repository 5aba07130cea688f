/* Walks the records of a batch (magic 2, uncompressed) without Python's lock.
 *
 * No Python.h: a plain shared library that walker.py calls through ctypes, so one build serves
 * every Python. walker_reference.py holds the same functions in Python: the specification, and
 * the tests hold the two equal on sound, mutated and truncated input.
 */
#include "records.h"

/* Raised whenever a signature or a struct below changes; walker.py refuses another version. */
enum { ABI_VERSION = 4 };

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

static inline int32_t read_i32(const uint8_t *at) {
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static inline int64_t read_i64(const uint8_t *at) {
    return (int64_t)((uint64_t)(uint32_t)read_i32(at) << 32 | (uint32_t)read_i32(at + 4));
}

/* Whether a whole batch is as nearly all are: one batch of magic 2 and nothing behind it, not
 * compressed, no control batch, in its producer's time, with dense offsets from 0 on and sound
 * records, and a header that tells their largest time. 0 says only that somebody has to look
 * closer. The checksum is the caller's. */
EXPORT int32_t skylog_is_plain(const uint8_t *batch, int32_t size, int32_t size_max,
                               int64_t earliest, int64_t latest, int32_t keyed) {
    enum { HEADER = 61, OVERHEAD = 12, CODEC_TIME_CONTROL_HORIZON = 0x6f };
    if (size < HEADER || size > size_max || read_i32(batch + 8) != size - OVERHEAD) return 0;
    if (read_i64(batch) != 0 || batch[16] != 2) return 0;
    if (batch[22] & CODEC_TIME_CONTROL_HORIZON) return 0;
    int32_t count = read_i32(batch + 57), last_delta = read_i32(batch + 23);
    if (count <= 0 || last_delta != count - 1) return 0;
    if (read_i64(batch + 43) >= 0 && read_i32(batch + 53) < 0) return 0;
    walk_result seen;
    skylog_walk(batch + HEADER, size - HEADER, count, read_i64(batch + 27), earliest, latest, 1,
                &seen, 0);
    if (seen.error || seen.outside || (keyed && seen.keyless)) return 0;
    int64_t max_timestamp = seen.max_timestamp < -1 ? -1 : seen.max_timestamp;
    return max_timestamp == read_i64(batch + 35);
}
