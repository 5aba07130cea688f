/* CRC-32C, by the processor's instruction where it has one. */
#ifndef SKYLOG_CRC32C_H
#define SKYLOG_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static inline uint64_t load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t crc_by_table(const uint8_t *data, size_t size, uint32_t crc) {
    static uint32_t table[256];
    static volatile int ready; /* threads that fill it at once write the same */
    if (!ready) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
            table[i] = value;
        }
        ready = 1;
    }
    while (size--) crc = table[(crc ^ *data++) & 0xff] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__)
#if defined(__clang__)
#define WITH_CRC32 __attribute__((target("sse4.2,crc32")))
#else
#define WITH_CRC32 __attribute__((target("sse4.2")))
#endif

WITH_CRC32 static uint32_t crc_by_machine(const uint8_t *data, size_t size, uint32_t crc) {
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, data += 8) wide = __builtin_ia32_crc32di(wide, load64(data));
    crc = (uint32_t)wide;
    while (size--) crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
}

/* By hand: zig does not link what __builtin_cpu_supports needs into shared libraries. */
static int machine_has_crc(void) {
    static volatile int known; /* 0 not asked yet, 1 no, 2 yes; threads write the same */
    if (!known) {
        unsigned a, b, c = 0, d;
        known = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2 ? 2 : 1;
    }
    return known == 2;
}
#endif

static uint32_t crc32c(const uint8_t *data, size_t size) {
#if defined(__x86_64__)
    if (machine_has_crc()) return ~crc_by_machine(data, size, ~0u);
#endif
    return ~crc_by_table(data, size, ~0u);
}

#endif
