/* Turns the records of many batches into the buffers of Arrow columns, without Python's lock.
 *
 * `fill` checks every record and writes it, into room for the most that so many bytes can be;
 * `measure` says what they are where that would be too much. columns_reference.py does the same in
 * Python: the specification, and the tests hold the two equal on sound, mutated and truncated input.
 */
#include <string.h>

#include "kernel/native.h"
#include "wire/records.h"

typedef struct {
    const uint8_t *data; /* the records, uncompressed */
    int64_t base_offset, base_timestamp;
    int64_t append_timestamp; /* of all records, where `appended` */
    int32_t size, count, last_delta, appended;
} batch;

/* Which records become rows; both ends of the times are within. */
typedef struct {
    int64_t start_offset, end_offset, min_timestamp, max_timestamp;
} range;

typedef struct {
    int64_t rows, key_bytes, key_nulls, value_bytes, value_nulls;
    int64_t headerless, headers, header_key_bytes, header_value_bytes, header_value_nulls;
    int32_t error, error_batch, error_index;
} measured;

/* A column of byte strings. `ends` is null where it is not wanted. */
typedef struct {
    int32_t *ends; /* one more than rows: the first is 0 */
    uint8_t *bytes, *present;
} strings;

typedef struct {
    int64_t *offsets, *timestamps;
    int32_t *timestamp_types;
    strings key, value, header_key, header_value;
    int32_t *header_ends; /* null where headers are not wanted */
    uint8_t *header_present;
} columns;

typedef struct {
    cursor c;
    const batch *of;
    location record;
    int32_t index, last_delta;
} walk;

static inline walk start(const batch *b) {
    return (walk){.c = {b->data, 0, b->size}, .of = b, .index = 0, .last_delta = -1};
}

/* Reads the next record: offset deltas grow and stay within the batch. */
static inline enum error step(walk *w) {
    enum error error = read_record(&w->c, w->of->base_timestamp, &w->record);
    if (error != SOUND) return error;
    int32_t delta = w->record.offset_delta;
    if (delta <= w->last_delta || delta > w->of->last_delta) return BAD_OFFSET;
    w->last_delta = delta;
    if (w->of->appended) w->record.timestamp = w->of->append_timestamp;
    w->index++;
    return SOUND;
}

static inline int64_t offset_of(const walk *w) {
    return add(w->of->base_offset, w->record.offset_delta);
}

static inline int is_wanted(const walk *w, const range *within) {
    int64_t offset = offset_of(w);
    return offset >= within->start_offset && offset < within->end_offset &&
           w->record.timestamp >= within->min_timestamp &&
           w->record.timestamp <= within->max_timestamp;
}

static inline void count_string(int32_t size, int64_t *bytes, int64_t *nulls) {
    if (size < 0) *nulls += 1;
    else *bytes += size;
}

static void count_headers(const walk *w, measured *out) {
    cursor c = {w->c.data, w->record.headers_at, w->c.at};
    int32_t at = 0, size = 0;
    int64_t never_null = 0;
    for (int32_t i = 0; i < w->record.header_count; i++) {
        skip_bytes(&c, &at, &size);
        count_string(size, &out->header_key_bytes, &never_null);
        skip_bytes(&c, &at, &size);
        count_string(size, &out->header_value_bytes, &out->header_value_nulls);
    }
    out->headers += w->record.header_count;
    out->headerless += w->record.header_count == 0;
}

static inline void count_row(const walk *w, measured *out) {
    out->rows++;
    count_string(w->record.key_size, &out->key_bytes, &out->key_nulls);
    count_string(w->record.value_size, &out->value_bytes, &out->value_nulls);
}

static inline void put_bit(uint8_t *bits, int64_t at, int bit) {
    if ((at & 7) == 0) bits[at >> 3] = 0;
    bits[at >> 3] |= (uint8_t)(bit << (at & 7));
}

static inline void put_string(strings *to, int64_t row, const uint8_t *data, int32_t at,
                              int32_t size) {
    if (!to->ends) return;
    int32_t begin = to->ends[row];
    if (size > 0) memcpy(to->bytes + begin, data + at, (size_t)size);
    to->ends[row + 1] = begin + (size > 0 ? size : 0);
    put_bit(to->present, row, size >= 0);
}

static void put_headers(columns *to, int64_t row, const walk *w) {
    cursor c = {w->c.data, w->record.headers_at, w->c.at};
    int32_t at = 0, size = 0;
    int64_t header = to->header_ends[row];
    for (int32_t i = 0; i < w->record.header_count; i++, header++) {
        skip_bytes(&c, &at, &size);
        put_string(&to->header_key, header, c.data, at, size);
        skip_bytes(&c, &at, &size);
        put_string(&to->header_value, header, c.data, at, size);
    }
    to->header_ends[row + 1] = (int32_t)header;
    put_bit(to->header_present, row, w->record.header_count > 0);
}

/* Kafka's milliseconds as microseconds; times that have none become the nearest that has. */
static inline int64_t microseconds(int64_t ms) {
    if (ms > INT64_MAX / 1000) ms = INT64_MAX / 1000;
    if (ms < INT64_MIN / 1000) ms = INT64_MIN / 1000;
    return ms * 1000;
}

static inline void put_row(columns *to, int64_t row, const walk *w) {
    const location *record = &w->record;
    if (to->offsets) to->offsets[row] = offset_of(w);
    if (to->timestamps) to->timestamps[row] = microseconds(record->timestamp);
    if (to->timestamp_types) to->timestamp_types[row] = w->of->appended;
    put_string(&to->key, row, w->c.data, record->key_at, record->key_size);
    put_string(&to->value, row, w->c.data, record->value_at, record->value_size);
    if (to->header_ends) put_headers(to, row, w);
}

/* Goes through all records, up to the first that is broken; rows are written if `to` is given. */
static inline void go_through(const batch *batches, int32_t count, const range *within, columns *to,
                              int with_headers, measured *out) {
    *out = (measured){0};
    for (int32_t i = 0; i < count; i++) {
        walk w = start(&batches[i]);
        enum error error = SOUND;
        while (w.index < w.of->count && (error = step(&w)) == SOUND) {
            if (!is_wanted(&w, within)) continue;
            if (to) put_row(to, out->rows, &w);
            count_row(&w, out);
            if (with_headers) count_headers(&w, out);
        }
        if (error == SOUND && w.c.at != w.c.end) error = TRAILING_BYTES;
        if (error != SOUND) {
            out->error = error;
            out->error_batch = i;
            out->error_index = w.index;
            return;
        }
    }
}

/* Fills columns that have room for every row that the batches can have, and says what they took. */
static void fill(const batch *batches, int32_t count, const range *within, columns *to,
                 measured *out) {
    strings *all[] = {&to->key, &to->value, &to->header_key, &to->header_value};
    for (int i = 0; i < 4; i++)
        if (all[i]->ends) all[i]->ends[0] = 0;
    if (to->header_ends) {
        to->header_ends[0] = 0;
        go_through(batches, count, within, to, 1, out);
    } else {
        go_through(batches, count, within, to, 0, out);
    }
}

/* -- for Python ---------------------------------------------------------------------------- */

/* The first two buffers are the batches and the range. */
static int takes_batches(arguments *taken, const char *format, PyObject *const *given,
                         Py_ssize_t count) {
    if (!take(taken, format, given, count)) return 0;
    const Py_buffer *held = taken->buffers;
    if (check_sizes(held[0].len % (int64_t)sizeof(batch) == 0 && held[0].len <= INT32_MAX &&
                    held[1].len == sizeof(range)))
        return 1;
    give_back(taken, NULL);
    return 0;
}

static PyObject *told(const measured *found) {
    return Py_BuildValue("(LLLLLLLLLLiii)", (long long)found->rows, (long long)found->key_bytes,
                         (long long)found->key_nulls, (long long)found->value_bytes,
                         (long long)found->value_nulls, (long long)found->headerless,
                         (long long)found->headers, (long long)found->header_key_bytes,
                         (long long)found->header_value_bytes,
                         (long long)found->header_value_nulls, found->error, found->error_batch,
                         found->error_index);
}

/* Adds up what the rows take. */
static PyObject *py_measure(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_batches(&a, "rr", given, count)) return NULL;
    measured found;
    UNLOCKED(1, go_through(a.buffers[0].buf, (int32_t)(a.buffers[0].len / (int64_t)sizeof(batch)),
                           a.buffers[1].buf, NULL, 1, &found));
    return give_back(&a, told(&found));
}

static PyObject *py_fill(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_batches(&a, "rrr", given, count)) return NULL;
    if (!check_sizes(a.buffers[2].len == sizeof(columns))) return give_back(&a, NULL);
    columns to = *(const columns *)a.buffers[2].buf;
    measured found;
    UNLOCKED(1, fill(a.buffers[0].buf, (int32_t)(a.buffers[0].len / (int64_t)sizeof(batch)),
                     a.buffers[1].buf, &to, &found));
    return give_back(&a, told(&found));
}

MODULE(_columns, FUNCTION(measure), FUNCTION(fill))
