/* Walks the records of a batch (magic 2, uncompressed).
 *
 * walker_reference.py holds the same functions in Python: the specification, and the tests hold the
 * two equal on sound, mutated and truncated input.
 */
#include "kernel/native.h"
#include "wire/records.h"

/* Up to here a walk takes a few microseconds, less than to give Python's lock up and wait for it
 * again. */
enum { SHORT_BYTES_MAX = 64 * 1024 };

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

/* Checks `count` records that must fill the data. Offset deltas are 0, 1, 2, … when `dense`
 * (what producers send), else they only grow (what compaction leaves). `locations` is null or
 * has room for `count` records. */
static void walk(const uint8_t *data, int32_t size, int32_t count, int64_t base_timestamp,
                 int64_t earliest, int64_t latest, int64_t dense, walk_result *out,
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
static int32_t find_faults(const uint8_t *data, int32_t size, int32_t count,
                           int64_t base_timestamp, int64_t earliest, int64_t latest,
                           int64_t keyed, fault *faults, int64_t room) {
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
static int32_t find_timestamp(const uint8_t *data, int32_t size, int32_t count,
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

/* Whether a whole batch is of the most common kind: one batch of magic 2 and nothing after it, not
 * compressed, no control batch, with its producer's timestamps, dense offsets from 0 and valid
 * records, and their largest timestamp in the header. 0 only means that Python must check it. The
 * caller verifies the checksum. */
static int32_t is_plain(const uint8_t *batch, int32_t size, int64_t size_max, int64_t earliest,
                        int64_t latest, int64_t keyed) {
    enum { HEADER = 61, OVERHEAD = 12, CODEC_TIME_CONTROL_HORIZON = 0x6f };
    if (size < HEADER || size > size_max || read_i32(batch + 8) != size - OVERHEAD) return 0;
    if (read_i64(batch) != 0 || batch[16] != 2) return 0;
    if (batch[22] & CODEC_TIME_CONTROL_HORIZON) return 0;
    int32_t count = read_i32(batch + 57), last_delta = read_i32(batch + 23);
    if (count <= 0 || last_delta != count - 1) return 0;
    if (read_i64(batch + 43) >= 0 && read_i32(batch + 53) < 0) return 0;
    walk_result seen;
    walk(batch + HEADER, size - HEADER, count, read_i64(batch + 27), earliest, latest, 1, &seen,
         NULL);
    if (seen.error || seen.outside || (keyed && seen.keyless)) return 0;
    int64_t max_timestamp = seen.max_timestamp < -1 ? -1 : seen.max_timestamp;
    return max_timestamp == read_i64(batch + 35);
}

/* -- for Python ---------------------------------------------------------------------------- */

/* The records are the first buffer. */
static int takes_records(arguments *taken, const char *format, PyObject *const *given,
                         Py_ssize_t count) {
    if (!take(taken, format, given, count)) return 0;
    if (check_sizes(taken->buffers[0].len <= INT32_MAX)) return 1;
    give_back(taken, NULL);
    return 0;
}

static PyObject *py_walk(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_records(&a, "rillli", given, count)) return NULL;
    int32_t size = (int32_t)a.buffers[0].len;
    walk_result out;
    UNLOCKED(size > SHORT_BYTES_MAX,
             walk(a.buffers[0].buf, size, (int32_t)a.numbers[0], a.numbers[1], a.numbers[2],
                  a.numbers[3], a.numbers[4], &out, NULL));
    return give_back(&a, Py_BuildValue("(LLiiiii)", (long long)out.min_timestamp,
                                       (long long)out.max_timestamp, out.max_timestamp_delta,
                                       out.error, out.error_index, out.keyless, out.outside));
}

static PyObject *py_locate(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_records(&a, "rwil", given, count)) return NULL;
    int32_t size = (int32_t)a.buffers[0].len, records = (int32_t)a.numbers[0];
    /* No more records are found than the bytes can hold, whatever the batch declares. */
    int64_t most = records < size / RECORD_BYTES_MIN ? records : size / RECORD_BYTES_MIN;
    if (!check_sizes(a.buffers[1].len >= most * (int64_t)sizeof(location)))
        return give_back(&a, NULL);
    walk_result out;
    UNLOCKED(size > SHORT_BYTES_MAX, walk(a.buffers[0].buf, size, records, a.numbers[1], INT64_MIN,
                                          INT64_MAX, 0, &out, a.buffers[1].buf));
    return give_back(&a, Py_BuildValue("(ii)", out.error, out.error_index));
}

static PyObject *py_find_faults(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_records(&a, "rwillli", given, count)) return NULL;
    int32_t size = (int32_t)a.buffers[0].len, found;
    int64_t room = a.buffers[1].len / (int64_t)sizeof(fault);
    UNLOCKED(size > SHORT_BYTES_MAX,
             found = find_faults(a.buffers[0].buf, size, (int32_t)a.numbers[0], a.numbers[1],
                                 a.numbers[2], a.numbers[3], a.numbers[4], a.buffers[1].buf, room));
    return give_back(&a, PyLong_FromLong(found));
}

/* (1 or 0 or a negated error, offset delta or index, timestamp). */
static PyObject *py_find_timestamp(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_records(&a, "rilli", given, count)) return NULL;
    int32_t size = (int32_t)a.buffers[0].len, answer;
    location found = {0};
    UNLOCKED(size > SHORT_BYTES_MAX,
             answer = find_timestamp(a.buffers[0].buf, size, (int32_t)a.numbers[0], a.numbers[1],
                                     a.numbers[2], (int32_t)a.numbers[3], &found));
    return give_back(
        &a, Py_BuildValue("(iiL)", answer, found.offset_delta, (long long)found.timestamp));
}

static PyObject *py_is_plain(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!takes_records(&a, "rllli", given, count)) return NULL;
    int32_t size = (int32_t)a.buffers[0].len, plain;
    UNLOCKED(size > SHORT_BYTES_MAX, plain = is_plain(a.buffers[0].buf, size, a.numbers[0],
                                                      a.numbers[1], a.numbers[2], a.numbers[3]));
    return give_back(&a, PyBool_FromLong(plain));
}

MODULE(_walker, FUNCTION(walk), FUNCTION(locate), FUNCTION(find_faults), FUNCTION(find_timestamp),
       FUNCTION(is_plain))
