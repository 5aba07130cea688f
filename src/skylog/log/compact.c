/* Compaction without Python's lock: the offset of the newest record of each key, and the copy of a
 * log without older records.
 *
 * Plain batches (not compressed, of no transaction) are done here many at a time; at any other the
 * caller does one with Python's help. offset_map_reference.py does it all in Python.
 */
#include "kernel/native.h"
#include "log/crc32c.h"
#include "wire/records.h"

enum { HEADER = 61, OVERHEAD = 12, CRC_FROM = 21 };
enum { CODEC = 0x07, LOG_APPEND_TIME = 0x08, TRANSACTIONAL = 0x10, CONTROL = 0x20, HORIZON = 0x40 };
/* Why a walk over batches ended. */
enum reason { NEEDS_BYTES, NEEDS_CALLER, MAP_FULL, BROKEN, NO_ROOM };
/* A record grows by at most ten bytes, of seven at least, when its timestamp is told anew. */
enum { GROWTH_MAX = 3 };

#define NO_HORIZON INT64_MAX

/* The offset is one more than the record's, so that zeroed memory is free slots. */
typedef struct {
    uint64_t low, high;
    int64_t next_offset;
} slot;

typedef struct {
    slot *slots;
    int64_t slot_count, used, used_max;
    uint64_t seed_low, seed_high;
} offset_map;

typedef struct {
    int64_t latest_offset; /* records after it are not judged */
    int64_t now_ms;
    int64_t new_horizon; /* for tombstones that have none yet */
} rule;

typedef struct {
    int64_t base_offset, base_timestamp;
    int64_t horizon; /* or NO_HORIZON */
    int32_t count;
    int32_t keep_all; /* a marker: it stays, with a horizon */
} batch_facts;

typedef struct {
    int64_t max_timestamp; /* of the records kept */
    int32_t kept, sets_horizon, size, error;
} filtered;

typedef struct {
    int64_t latest_offset;
    int32_t consumed, reason, written, rows;
} progress;

/* A batch that was written. */
typedef struct {
    int64_t last_offset, max_timestamp;
    int32_t size, count;
} row;

/* -- numbers ------------------------------------------------------------------------------- */

static inline void write_u32(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 24), at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8), at[3] = (uint8_t)value;
}

static inline void write_i64(uint8_t *at, int64_t value) {
    write_u32(at, (uint32_t)((uint64_t)value >> 32));
    write_u32(at + 4, (uint32_t)value);
}

static inline int32_t write_varint(uint8_t *out, int64_t value) {
    uint64_t raw = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    int32_t size = 0;
    for (; raw >= 0x80; raw >>= 7) out[size++] = (uint8_t)(raw | 0x80);
    out[size++] = (uint8_t)raw;
    return size;
}

/* -- the map ------------------------------------------------------------------------------- */

/* SipHash-2-4 with 128 bits: without the seed, keys that collide cannot be constructed. */
#define ROTATE(x, by) ((x) << (by) | (x) >> (64 - (by)))
#define ROUND                                                           \
    do {                                                                \
        v0 += v1, v1 = ROTATE(v1, 13), v1 ^= v0, v0 = ROTATE(v0, 32);   \
        v2 += v3, v3 = ROTATE(v3, 16), v3 ^= v2;                        \
        v0 += v3, v3 = ROTATE(v3, 21), v3 ^= v0;                        \
        v2 += v1, v1 = ROTATE(v1, 17), v1 ^= v2, v2 = ROTATE(v2, 32);   \
    } while (0)

static void hash(const offset_map *map, const uint8_t *key, int32_t size, uint64_t *low,
                 uint64_t *high) {
    uint64_t v0 = map->seed_low ^ 0x736f6d6570736575u, v1 = map->seed_high ^ 0x646f72616e646f6du;
    uint64_t v2 = map->seed_low ^ 0x6c7967656e657261u, v3 = map->seed_high ^ 0x7465646279746573u;
    uint64_t last = (uint64_t)size << 56;
    v1 ^= 0xee;
    for (; size >= 8; size -= 8, key += 8) {
        uint64_t word = load64(key);
        v3 ^= word;
        ROUND;
        ROUND;
        v0 ^= word;
    }
    for (int i = 0; i < size; i++) last |= (uint64_t)key[i] << 8 * i;
    v3 ^= last;
    ROUND;
    ROUND;
    v0 ^= last;
    v2 ^= 0xee;
    for (int i = 0; i < 4; i++) ROUND;
    *low = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    for (int i = 0; i < 4; i++) ROUND;
    *high = v0 ^ v1 ^ v2 ^ v3;
}

/* The key's slot, or the free one where it belongs; used_max is less than there are slots. */
static slot *find(const offset_map *map, const uint8_t *key, int32_t size, uint64_t *low,
                  uint64_t *high) {
    hash(map, key, size, low, high);
    int64_t at = (int64_t)((unsigned __int128)*low * (uint64_t)map->slot_count >> 64);
    for (;; at = at + 1 == map->slot_count ? 0 : at + 1) {
        slot *found = &map->slots[at];
        if (!found->next_offset || (found->low == *low && found->high == *high)) return found;
    }
}

/* Notes the offsets of `count` records from `start_offset` on: 0, 1 when the map is full, or a
 * negated error. */
static int32_t note(offset_map *map, const uint8_t *data, int32_t size, int32_t count,
                    int64_t base_offset, int64_t start_offset) {
    cursor c = {data, 0, size};
    location record;
    uint64_t low, high;
    for (int32_t index = 0; index < count; index++) {
        enum error error = read_record(&c, 0, &record);
        if (error != SOUND) return -(int32_t)error;
        int64_t offset = add(base_offset, record.offset_delta);
        if (record.key_size < 0 || offset < start_offset) continue;
        slot *found = find(map, data + record.key_at, record.key_size, &low, &high);
        if (!found->next_offset) {
            if (map->used >= map->used_max) return 1;
            map->used++;
            found->low = low;
            found->high = high;
        }
        found->next_offset = add(offset, 1);
    }
    return c.at == c.end ? 0 : -(int32_t)TRAILING_BYTES;
}

/* The size of the whole batch at `batch`, 0 when it is not all there, -1 when it is none. */
static int32_t whole_batch(const uint8_t *batch, int32_t left) {
    if (left < HEADER) return 0;
    int32_t length = read_i32(batch + 8);
    if (length < HEADER - OVERHEAD || length > INT32_MAX - OVERHEAD || batch[16] != 2) return -1;
    if (read_i32(batch + 23) < 0 || read_i32(batch + 57) < 0) return -1;
    return length + OVERHEAD <= left ? length + OVERHEAD : 0;
}

/* Notes the records of whole, plain batches. */
static void note_batches(offset_map *map, const uint8_t *data, int32_t size, int64_t start_offset,
                         progress *out) {
    *out = (progress){.latest_offset = -1};
    while (out->consumed < size) {
        const uint8_t *batch = data + out->consumed;
        int32_t whole = whole_batch(batch, size - out->consumed);
        if (whole <= 0) {
            out->reason = whole ? BROKEN : NEEDS_BYTES;
            return;
        }
        if (batch[22] & (CODEC | TRANSACTIONAL | CONTROL)) {
            out->reason = NEEDS_CALLER;
            return;
        }
        int64_t base = read_i64(batch), last = add(base, read_i32(batch + 23));
        int32_t answer = note(map, batch + HEADER, whole - HEADER, read_i32(batch + 57), base,
                              start_offset);
        if (answer) {
            out->reason = answer > 0 ? MAP_FULL : BROKEN;
            return;
        }
        if (last >= start_offset) out->latest_offset = last;
        out->consumed += whole;
    }
    out->reason = NEEDS_BYTES;
}

/* -- the filter ---------------------------------------------------------------------------- */

static int is_kept(const offset_map *map, const rule *rules, const batch_facts *batch,
                   const uint8_t *data, const location *record) {
    int64_t offset = add(batch->base_offset, record->offset_delta);
    uint64_t low, high;
    if (batch->keep_all || offset > rules->latest_offset) return 1;
    if (record->key_size < 0) return 0;
    if (record->value_size < 0 && rules->now_ms >= batch->horizon) return 0;
    slot *found = find(map, data + record->key_at, record->key_size, &low, &high);
    return add(offset, 1) >= found->next_offset; /* a free slot has 0 */
}

/* Marks the records to keep. */
static void judge(const offset_map *map, const rule *rules, const batch_facts *batch,
                  const uint8_t *data, int32_t size, uint8_t *marks, filtered *out) {
    cursor c = {data, 0, size};
    location record;
    *out = (filtered){.max_timestamp = INT64_MIN};
    for (int32_t index = 0; index < batch->count; index++) {
        out->error = read_record(&c, batch->base_timestamp, &record);
        if (out->error != SOUND) return;
        marks[index] = (uint8_t)is_kept(map, rules, batch, data, &record);
        if (!marks[index]) continue;
        out->kept++;
        if (record.value_size < 0 || batch->keep_all) out->sets_horizon = batch->horizon == NO_HORIZON;
        if (record.timestamp > out->max_timestamp) out->max_timestamp = record.timestamp;
    }
    if (c.at != c.end) out->error = TRAILING_BYTES;
}

/* Copies the marked records, which were found sound; with a new horizon, their timestamps are told
 * from there. */
static int32_t copy(const rule *rules, const batch_facts *batch, const uint8_t *data, int32_t size,
                    const uint8_t *marks, int anew, uint8_t *out) {
    cursor c = {data, 0, size};
    int32_t written = 0;
    for (int32_t index = 0; index < batch->count; index++) {
        int32_t begin = c.at;
        int64_t length = 0, delta = 0;
        read_varint(&c, 5, &length);
        int32_t body = c.at, end = c.at + (int32_t)length;
        c.at = end;
        if (!marks[index]) continue;
        if (!anew) {
            memcpy(out + written, data + begin, (size_t)(end - begin));
            written += end - begin;
            continue;
        }
        cursor inside = {data, body + 1, end};
        read_varint(&inside, 10, &delta);
        uint8_t told[10];
        int64_t timestamp = add(batch->base_timestamp, delta);
        int32_t told_size = write_varint(told, subtract(timestamp, rules->new_horizon));
        written += write_varint(out + written, 1 + told_size + end - inside.at);
        out[written++] = data[body];
        memcpy(out + written, told, (size_t)told_size);
        written += told_size;
        memcpy(out + written, data + inside.at, (size_t)(end - inside.at));
        written += end - inside.at;
    }
    return written;
}

/* Filters the records of one batch into `out`, which has room for GROWTH_MAX times as much. */
static void filter(const offset_map *map, const rule *rules, const batch_facts *batch,
                   const uint8_t *data, int32_t size, uint8_t *marks, uint8_t *out,
                   filtered *result) {
    judge(map, rules, batch, data, size, marks, result);
    if (result->error != SOUND || !result->kept) return;
    if (result->kept == batch->count && !result->sets_horizon) return;
    result->size = copy(rules, batch, data, size, marks, result->sets_horizon, out);
}

static int is_listed(const int64_t *offsets, int32_t count, int64_t wanted) {
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (offsets[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && offsets[low] == wanted;
}

static void finish(uint8_t *batch, int32_t size) {
    write_u32(batch + 8, (uint32_t)(size - OVERHEAD));
    write_u32(batch + 17, crc32c(batch + CRC_FROM, (size_t)(size - CRC_FROM)));
}

/* Writes what is left of a plain batch; its size, 0 for nothing, -1 when the batch is broken. */
static int32_t rewrite(const offset_map *map, const rule *rules, const uint8_t *batch,
                       int32_t whole, int empty_stays, uint8_t *marks, uint8_t *out, row *written) {
    batch_facts facts = {
        .base_offset = read_i64(batch),
        .base_timestamp = read_i64(batch + 27),
        .horizon = batch[22] & HORIZON ? read_i64(batch + 27) : NO_HORIZON,
        .count = read_i32(batch + 57),
    };
    filtered seen;
    if (facts.count > whole) return -1;
    judge(map, rules, &facts, batch + HEADER, whole - HEADER, marks, &seen);
    if (seen.error != SOUND) return -1;
    *written = (row){add(facts.base_offset, read_i32(batch + 23)), read_i64(batch + 35), whole,
                     seen.kept};
    if (!seen.kept && !empty_stays) return 0;
    if (seen.kept == facts.count && !seen.sets_horizon) {
        memcpy(out, batch, (size_t)whole);
        return whole;
    }
    if (crc32c(batch + CRC_FROM, (size_t)(whole - CRC_FROM)) != read_u32(batch + 17)) return -1;
    memcpy(out, batch, HEADER);
    if (!seen.kept) {
        out[22] &= LOG_APPEND_TIME;
        write_i64(out + 27, -1);
    } else if (seen.sets_horizon) {
        out[22] |= HORIZON;
        write_i64(out + 27, rules->new_horizon);
    }
    if (seen.kept && !(batch[22] & LOG_APPEND_TIME)) {
        written->max_timestamp = seen.max_timestamp;
        write_i64(out + 35, seen.max_timestamp);
    }
    write_u32(out + 57, (uint32_t)seen.kept);
    int32_t size = HEADER;
    if (seen.kept)
        size += copy(rules, &facts, batch + HEADER, whole - HEADER, marks, seen.sets_horizon,
                     out + HEADER);
    finish(out, size);
    written->size = size;
    return size;
}

/* Copies what is left of whole, plain batches to `out`, and says of each where it is. Of `marks`
 * there are as many as bytes, of `rows` as many as batches can be in them. Batches whose last
 * offset is listed stay without records, too. */
static void filter_batches(const offset_map *map, const rule *rules, const int64_t *listed,
                           int32_t listed_count, const uint8_t *data, int32_t size, uint8_t *marks,
                           uint8_t *out, int32_t room, row *rows, progress *result) {
    *result = (progress){.latest_offset = -1};
    while (result->consumed < size) {
        const uint8_t *batch = data + result->consumed;
        int32_t whole = whole_batch(batch, size - result->consumed);
        result->reason = whole == 0 ? NEEDS_BYTES : BROKEN;
        if (whole <= 0) return;
        result->reason = NEEDS_CALLER;
        if (batch[22] & (CODEC | TRANSACTIONAL | CONTROL)) return;
        result->reason = NO_ROOM;
        if ((room - result->written) / GROWTH_MAX < whole) return;
        int64_t last = add(read_i64(batch), read_i32(batch + 23));
        int32_t written =
            rewrite(map, rules, batch, whole, is_listed(listed, listed_count, last), marks,
                    out + result->written, &rows[result->rows]);
        result->reason = BROKEN;
        if (written < 0) return;
        if (written) result->rows++;
        result->written += written;
        result->consumed += whole;
        result->latest_offset = last;
    }
    result->reason = NEEDS_BYTES;
}

/* -- for Python ---------------------------------------------------------------------------- */

/* The first two buffers are the map and its slots, the one at `records` are bytes of a log. */
static offset_map *takes_map(arguments *taken, const char *format, int records,
                             PyObject *const *given, Py_ssize_t count) {
    if (!take(taken, format, given, count)) return NULL;
    const Py_buffer *held = taken->buffers;
    offset_map *map = held[0].buf;
    if (check_sizes(held[0].len == sizeof(offset_map) && held[records].len <= INT32_MAX &&
                    map->used_max < map->slot_count &&
                    held[1].len / (int64_t)sizeof(slot) >= map->slot_count)) {
        map->slots = held[1].buf;
        return map;
    }
    give_back(taken, NULL);
    return NULL;
}

static PyObject *told(const progress *seen) {
    return Py_BuildValue("(Liiii)", (long long)seen->latest_offset, seen->consumed, seen->reason,
                         seen->written, seen->rows);
}

static PyObject *py_note(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    offset_map *map = takes_map(&a, "wwrill", 2, given, count);
    if (!map) return NULL;
    int32_t answer;
    UNLOCKED(1, answer = note(map, a.buffers[2].buf, (int32_t)a.buffers[2].len,
                              (int32_t)a.numbers[0], a.numbers[1], a.numbers[2]));
    return give_back(&a, PyLong_FromLong(answer));
}

static PyObject *py_note_batches(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    offset_map *map = takes_map(&a, "wwrl", 2, given, count);
    if (!map) return NULL;
    progress seen;
    UNLOCKED(1, note_batches(map, a.buffers[2].buf, (int32_t)a.buffers[2].len, a.numbers[0], &seen));
    return give_back(&a, told(&seen));
}

/* Map, slots, rule, facts of the batch, records, marks, room. */
static PyObject *py_filter(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    offset_map *map = takes_map(&a, "wwrrrww", 4, given, count);
    if (!map) return NULL;
    const Py_buffer *data = &a.buffers[4], *marks = &a.buffers[5], *out = &a.buffers[6];
    if (!check_sizes(a.buffers[2].len == sizeof(rule) && a.buffers[3].len == sizeof(batch_facts) &&
                     marks->len >= data->len && out->len / GROWTH_MAX >= data->len))
        return give_back(&a, NULL);
    filtered seen;
    UNLOCKED(1, filter(map, a.buffers[2].buf, a.buffers[3].buf, data->buf, (int32_t)data->len,
                       marks->buf, out->buf, &seen));
    return give_back(&a, Py_BuildValue("(Liiii)", (long long)seen.max_timestamp, seen.kept,
                                       seen.sets_horizon, seen.size, seen.error));
}

/* Map, slots, rule, listed offsets, batches, marks, room, rows. */
static PyObject *py_filter_batches(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    offset_map *map = takes_map(&a, "wwrrrwww", 4, given, count);
    if (!map) return NULL;
    const Py_buffer *listed = &a.buffers[3], *data = &a.buffers[4];
    const Py_buffer *marks = &a.buffers[5], *out = &a.buffers[6], *rows = &a.buffers[7];
    if (!check_sizes(a.buffers[2].len == sizeof(rule) && listed->len <= INT32_MAX &&
                     marks->len >= data->len && out->len <= INT32_MAX &&
                     rows->len / (int64_t)sizeof(row) >= data->len / HEADER))
        return give_back(&a, NULL);
    progress seen;
    UNLOCKED(1, filter_batches(map, a.buffers[2].buf, listed->buf,
                               (int32_t)(listed->len / (int64_t)sizeof(int64_t)), data->buf,
                               (int32_t)data->len, marks->buf, out->buf, (int32_t)out->len,
                               rows->buf, &seen));
    return give_back(&a, told(&seen));
}

MODULE(_compact, FUNCTION(note), FUNCTION(note_batches), FUNCTION(filter), FUNCTION(filter_batches))
