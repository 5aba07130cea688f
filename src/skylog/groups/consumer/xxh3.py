"""XXH3 with 64 bits and no seed: the hash that Kafka stores for a group's topics.

Only the few bytes of changed topics pass through here, so plain Python is fast enough.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = 2**64 - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1: Final = 0x9E3779B185EBCA87
_P64_2: Final = 0xC2B2AE3D27D4EB4F
_P64_3: Final = 0x165667B19E3779F9
_P64_4: Final = 0x85EBCA77C2B2AE63
_P64_5: Final = 0x27D4EB2F165667C5
_MIX_1: Final = 0x165667919E3779F9
_MIX_2: Final = 0x9FB21C651E98DF25
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_STRIPES_PER_BLOCK: Final = 16


def xxh3_64(data: bytes) -> int:
    size = len(data)
    if size <= 16:
        return _short(data, size)
    if size <= 128:
        return _middle(data, size)
    if size <= 240:
        return _long(data, size)
    return _stripes(data, size)


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product ^ (product >> 64)) & _MASK


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ (value >> 37)) * _MIX_1 & _MASK
    return value ^ (value >> 32)


def _avalanche_64(value: int) -> int:
    value = (value ^ (value >> 33)) * _P64_2 & _MASK
    value = (value ^ (value >> 29)) * _P64_3 & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _short(data: bytes, size: int) -> int:
    if size == 0:
        return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))
    if size <= 3:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_64(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    if size <= 8:
        both = _u32(data, size - 4) + (_u32(data, 0) << 32)
        value = both ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _MIX_2 & _MASK
        value = (value ^ ((value >> 35) + size)) * _MIX_2 & _MASK
        return value ^ (value >> 28)
    low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
    high = _u64(data, size - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(size + swapped + high + _fold(low, high))


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(
        _u64(data, at) ^ _u64(_SECRET, secret_at),
        _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8),
    )


def _middle(data: bytes, size: int) -> int:
    total = size * _P64_1
    for step in range((size - 1) // 32 + 1):
        total += _mix(data, 16 * step, 32 * step)
        total += _mix(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total)


def _long(data: bytes, size: int) -> int:
    first = size * _P64_1 + sum(_mix(data, 16 * i, 16 * i) for i in range(8))
    rest = sum(_mix(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche(_avalanche(first) + rest + _mix(data, size - 16, 119))


def _stripes(data: bytes, size: int) -> int:
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    count = (size - 1) // _STRIPE
    for stripe in range(count):
        _accumulate(lanes, data, stripe * _STRIPE, 8 * (stripe % _STRIPES_PER_BLOCK))
        if stripe % _STRIPES_PER_BLOCK == _STRIPES_PER_BLOCK - 1:
            for index, key in enumerate(struct.unpack_from("<8Q", _SECRET, 128)):
                lane = lanes[index]
                lanes[index] = (lane ^ (lane >> 47) ^ key) * _P32_1 & _MASK
    _accumulate(lanes, data, size - _STRIPE, 121)
    keys = struct.unpack_from("<8Q", _SECRET, 11)
    mixed = [lane ^ key for lane, key in zip(lanes, keys, strict=True)]
    return _avalanche(size * _P64_1 + sum(map(_fold, mixed[::2], mixed[1::2])))


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    words = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", _SECRET, secret_at)
    for index, (word, key) in enumerate(zip(words, keys, strict=True)):
        keyed = word ^ key
        lanes[index ^ 1] = (lanes[index ^ 1] + word) & _MASK
        lanes[index] = (lanes[index] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & _MASK
