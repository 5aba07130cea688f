/* Reads one record of a batch (magic 2, uncompressed), trusting nothing.
 *
 * A record: size varint, then size bytes: attributes i8, timestamp delta varlong, offset delta
 * varint, key, value (varint size, negative for null, then bytes), header count varint, headers
 * (key as above but never null, value as above). Varints are zigzag, at most 5 or 10 bytes.
 */
#ifndef SKYLOG_RECORDS_H
#define SKYLOG_RECORDS_H

#include "kernel/native.h"

/* A record of nothing: size, attributes, two deltas, null key, null value, no headers. */
enum { RECORD_BYTES_MIN = 7 };

enum error { SOUND, EARLY_END, BAD_SIZE, BAD_RECORD, BAD_OFFSET, TRAILING_BYTES };

typedef struct {
    int64_t timestamp;
    int32_t record_at, offset_delta;
    int32_t key_at, key_size, value_at, value_size;
    int32_t headers_at, header_count;
} location;

typedef struct {
    const uint8_t *data;
    int32_t at, end;
} cursor;

static inline uint32_t read_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int32_t read_i32(const uint8_t *at) { return (int32_t)read_u32(at); }

static inline int64_t read_i64(const uint8_t *at) {
    return (int64_t)((uint64_t)read_u32(at) << 32 | read_u32(at + 4));
}

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

static inline int skip_headers(cursor *c, int32_t count) {
    int32_t at, size;
    for (int32_t i = 0; i < count; i++) {
        if (!skip_bytes(c, &at, &size) || size < 0) return 0;
        if (!skip_bytes(c, &at, &size)) return 0;
    }
    return 1;
}

/* The fields after a record's size; the cursor ends with the record. */
static inline int read_body(cursor *c, int64_t base_timestamp, location *record) {
    int64_t delta, offset_delta, count;
    if (c->at >= c->end) return 0;
    c->at++; /* attributes: none is defined */
    if (!read_varint(c, 10, &delta) || !read_varint(c, 5, &offset_delta)) return 0;
    record->timestamp = add(base_timestamp, delta);
    record->offset_delta = (int32_t)offset_delta;
    if (!skip_bytes(c, &record->key_at, &record->key_size)) return 0;
    if (!skip_bytes(c, &record->value_at, &record->value_size)) return 0;
    if (!read_varint(c, 5, &count) || count < 0 || count > c->end - c->at) return 0;
    record->headers_at = c->at;
    record->header_count = (int32_t)count;
    return skip_headers(c, record->header_count) && c->at == c->end;
}

static inline enum error read_record(cursor *c, int64_t base_timestamp, location *record) {
    int64_t size;
    if (c->at >= c->end) return EARLY_END;
    record->record_at = c->at;
    if (!read_varint(c, 5, &size) || size < 0 || size > c->end - c->at) return BAD_SIZE;
    cursor body = {c->data, c->at, c->at + (int32_t)size};
    c->at = body.end;
    return read_body(&body, base_timestamp, record) ? SOUND : BAD_RECORD;
}

#endif
