/* Says which partition each row of Arrow columns goes to, and writes rows as the records of a batch
 * (magic 2, uncompressed), without Python's lock.
 *
 * rows_reference.py does the same in Python: the specification, and the tests hold the two equal.
 *
 * A record: size varint, then size bytes: attributes i8, timestamp delta varlong, offset delta
 * varint, key, value (varint size, -1 for null, then bytes), header count varint, headers (key and
 * value as above). Varints are zigzag.
 */
#include <string.h>

#include "kernel/native.h"

/* A column of byte strings: row i is bytes[ends[at + i]] up to bytes[ends[at + i + 1]]. */
typedef struct {
    const uint8_t *present; /* bitmap that counts from `at`; null: no row is null */
    const int32_t *ends;    /* null: every row is null */
    const uint8_t *bytes;
    int64_t at;
} strings;

typedef struct {
    strings key, value;
    strings headers; /* `ends` count headers; `bytes` is not used */
    strings header_key, header_value;
    const int64_t *timestamps;
} rows;

typedef struct {
    const uint8_t *present;
    const int32_t *values; /* null: every row is null */
    int64_t at;
} numbers;

/* A topic's partitions, and where its rows without a key go at present. */
typedef struct {
    int64_t bytes; /* of rows that went there */
    int32_t count, stuck;
} topic;

typedef struct {
    int64_t next; /* the first row that was not written */
    int64_t bytes, base_timestamp, max_timestamp;
    int64_t needed; /* room for the first row, where there was too little; else 0 */
} written;

static inline int is_present(const uint8_t *bitmap, int64_t at) {
    return !bitmap || (bitmap[at >> 3] >> (at & 7) & 1);
}

/* The size of a row, -1 for null. */
static inline int64_t find(const strings *column, int64_t row, const uint8_t **bytes) {
    int64_t at = column->at + row;
    if (!column->ends || !is_present(column->present, at)) return -1;
    *bytes = column->bytes + column->ends[at];
    return (int64_t)column->ends[at + 1] - column->ends[at];
}

static inline uint64_t zigzag(int64_t number) {
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

static inline int64_t varint_size(int64_t number) {
    int64_t size = 1;
    for (uint64_t raw = zigzag(number); raw >= 0x80; raw >>= 7) size++;
    return size;
}

static inline uint8_t *put_varint(uint8_t *out, int64_t number) {
    uint64_t raw = zigzag(number);
    for (; raw >= 0x80; raw >>= 7) *out++ = (uint8_t)(raw | 0x80);
    *out++ = (uint8_t)raw;
    return out;
}

static inline int64_t string_size(const strings *column, int64_t row) {
    const uint8_t *bytes;
    int64_t size = find(column, row, &bytes);
    return varint_size(size) + (size > 0 ? size : 0);
}

static inline uint8_t *put_string(uint8_t *out, const strings *column, int64_t row) {
    const uint8_t *bytes = 0;
    int64_t size = find(column, row, &bytes);
    out = put_varint(out, size);
    if (size > 0) {
        memcpy(out, bytes, (size_t)size);
        out += size;
    }
    return out;
}

/* How many headers a row has, and which is the first of them. */
static inline int64_t find_headers(const rows *r, int64_t row, int64_t *first) {
    int64_t at = r->headers.at + row;
    *first = 0;
    if (!r->headers.ends || !is_present(r->headers.present, at)) return 0;
    *first = r->headers.ends[at];
    return r->headers.ends[at + 1] - *first;
}

static int64_t body_size(const rows *r, int64_t row, int64_t time_delta, int64_t index) {
    int64_t first, headers = find_headers(r, row, &first);
    int64_t size = 1 + varint_size(time_delta) + varint_size(index) + varint_size(headers);
    size += string_size(&r->key, row) + string_size(&r->value, row);
    for (int64_t i = first; i < first + headers; i++)
        size += string_size(&r->header_key, i) + string_size(&r->header_value, i);
    return size;
}

static uint8_t *put_body(uint8_t *out, const rows *r, int64_t row, int64_t time_delta,
                         int64_t index) {
    int64_t first, headers = find_headers(r, row, &first);
    *out++ = 0; /* attributes: none is defined */
    out = put_varint(out, time_delta);
    out = put_varint(out, index);
    out = put_string(out, &r->key, row);
    out = put_string(out, &r->value, row);
    out = put_varint(out, headers);
    for (int64_t i = first; i < first + headers; i++) {
        out = put_string(out, &r->header_key, i);
        out = put_string(out, &r->header_value, i);
    }
    return out;
}

/* Kafka's hash of a key. */
static uint32_t murmur2(const uint8_t *data, int64_t size) {
    const uint32_t m = 0x5bd1e995;
    uint32_t hash = 0x9747b28cu ^ (uint32_t)size;
    int64_t at = 0;
    for (; at + 4 <= size; at += 4) {
        uint32_t k = (uint32_t)data[at] | (uint32_t)data[at + 1] << 8 |
                     (uint32_t)data[at + 2] << 16 | (uint32_t)data[at + 3] << 24;
        k *= m;
        k ^= k >> 24;
        hash = hash * m ^ k * m;
    }
    if (at < size) {
        for (int64_t i = size - 1; i >= at; i--) hash ^= (uint32_t)data[i] << (8 * (i - at));
        hash *= m;
    }
    hash ^= hash >> 13;
    hash *= m;
    return hash ^ hash >> 15;
}

/* Rows without a key stay with a partition until it got `stick_bytes`, then go to the next. */
static inline int32_t stick(topic *t, int64_t size, int64_t stick_bytes) {
    int32_t chosen = t->stuck;
    t->bytes += size;
    if (t->bytes >= stick_bytes) {
        t->bytes = 0;
        t->stuck = (chosen + 1) % t->count;
    }
    return chosen;
}

/* Fills `out` with a partition per row: the one it asks for, else by its key, else a sticky one.
 * `topic_of` is null where all rows are of the first topic. Returns -1, or the first row that asks
 * for a partition that its topic does not have. */
static int64_t partition(const rows *r, int64_t count, const int32_t *topic_of, topic *topics,
                         const numbers *wanted, int64_t stick_bytes, int32_t *out) {
    for (int64_t row = 0; row < count; row++) {
        topic *t = topics + (topic_of ? topic_of[row] : 0);
        const uint8_t *key;
        if (wanted->values && is_present(wanted->present, wanted->at + row)) {
            out[row] = wanted->values[wanted->at + row];
            if (out[row] < 0 || out[row] >= t->count) return row;
            continue;
        }
        int64_t size = find(&r->key, row, &key);
        if (size >= 0)
            out[row] = (int32_t)(murmur2(key, size) & 0x7fffffff) % t->count;
        else
            out[row] = stick(t, body_size(r, row, 0, 0), stick_bytes);
    }
    return -1;
}

/* Writes rows order[start], order[start + 1] … while they fit into `bytes_max`, one at least, and
 * never beyond `room`. */
static void write_rows(const rows *r, const int64_t *order, int64_t start, int64_t stop,
                  int64_t bytes_max, uint8_t *out, int64_t room, written *result) {
    uint8_t *begin = out;
    int64_t base = r->timestamps[order[start]], at = start;
    *result = (written){.next = start, .base_timestamp = base, .max_timestamp = base};
    for (; at < stop; at++) {
        int64_t row = order[at], delta = subtract(r->timestamps[row], base), index = at - start;
        int64_t body = body_size(r, row, delta, index);
        int64_t whole = varint_size(body) + body, used = out - begin;
        if (at == start ? whole > room : used + whole > bytes_max || used + whole > room) {
            if (at == start) result->needed = whole;
            break;
        }
        out = put_body(put_varint(out, body), r, row, delta, index);
        if (r->timestamps[row] > result->max_timestamp) result->max_timestamp = r->timestamps[row];
    }
    result->next = at;
    result->bytes = out - begin;
}

/* -- for Python ---------------------------------------------------------------------------- */

/* Rows, the topic of each (or nothing), topics, partitions asked for, room for the answer. */
static PyObject *py_partition(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!take(&a, "rrwrwl", given, count)) return NULL;
    const Py_buffer *topic_of = &a.buffers[1], *topics = &a.buffers[2], *out = &a.buffers[4];
    if (!check_sizes(a.buffers[0].len == sizeof(rows) && a.buffers[3].len == sizeof(numbers) &&
                     (!topic_of->len || topic_of->len == out->len) &&
                     topics->len >= (int64_t)sizeof(topic)))
        return give_back(&a, NULL);
    int64_t bad;
    UNLOCKED(1, bad = partition(a.buffers[0].buf, out->len / (int64_t)sizeof(int32_t),
                                topic_of->len ? topic_of->buf : NULL, topics->buf, a.buffers[3].buf,
                                a.numbers[0], out->buf));
    return give_back(&a, PyLong_FromLongLong(bad));
}

/* Rows, their order, room for records; first and last row, bytes at most. */
static PyObject *py_write(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!take(&a, "rrwlll", given, count)) return NULL;
    const Py_buffer *order = &a.buffers[1], *out = &a.buffers[2];
    int64_t start = a.numbers[0], stop = a.numbers[1];
    if (!check_sizes(a.buffers[0].len == sizeof(rows) && 0 <= start && start < stop &&
                     stop <= order->len / (int64_t)sizeof(int64_t)))
        return give_back(&a, NULL);
    written result;
    UNLOCKED(1, write_rows(a.buffers[0].buf, order->buf, start, stop, a.numbers[2], out->buf,
                           out->len, &result));
    return give_back(&a, Py_BuildValue("(LLLLL)", (long long)result.next, (long long)result.bytes,
                                       (long long)result.base_timestamp,
                                       (long long)result.max_timestamp, (long long)result.needed));
}

MODULE(_rows, FUNCTION(partition), FUNCTION(write))
