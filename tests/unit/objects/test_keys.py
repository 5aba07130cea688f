"""Object keys: their format, and invalid ones."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.objects.keys import BadKey, ObjectKey, checked_prefix, known, staging_owner

NOW = 1_700_000_000_000


def test_a_fresh_key_spreads_and_tells_its_time() -> None:
    key = ObjectKey.new("wal", NOW, random.Random(1))
    kind, digits, unique = key.text.split("/")
    assert kind == key.kind == "wal"
    assert unique.endswith(digits)
    assert key.created_ms == NOW
    assert ObjectKey.parse(str(key)) == key


def test_fresh_keys_are_spread_over_all_digits_and_sort_by_time_within() -> None:
    rng = random.Random(2)
    keys = [ObjectKey.new("wal", NOW + n, rng) for n in range(4000)]
    assert len({key.text.split("/")[1] for key in keys}) == 256
    assert len(set(keys)) == 4000
    same = [key for key in keys if key.text.startswith("wal/7f/")]
    assert same == sorted(same)


def test_named_keys_have_no_time() -> None:
    key = ObjectKey.named("backup", "metadata", "0", "latest.bin")
    assert (key.text, key.created_ms) == ("backup/metadata/0/latest.bin", None)


def test_a_staged_key_tells_its_owner_and_its_time() -> None:
    owner = staging_owner("User:alice")
    assert owner == hashlib.sha256(b"User:alice").hexdigest()[:16]
    key = ObjectKey.staged(owner, NOW, random.Random(1))
    kind, named, digits, unique = key.text.split("/")
    assert (kind, named, key.owner, key.created_ms) == ("staging", owner, owner, NOW)
    assert unique.endswith(digits)
    assert ObjectKey.parse(key.text) == key
    manifest = ObjectKey.named("staging", owner, "w", "ab" * 16, "12.manifest")
    assert (manifest.owner, manifest.created_ms) == (owner, None)
    assert ObjectKey.new("wal", NOW, random.Random(1)).owner is None
    # Without an owner it is only a name, which no commit accepts.
    nobody = ObjectKey.parse(key.text.replace(f"{owner}/", ""))
    assert (nobody.owner, nobody.created_ms) == (None, None)


@pytest.mark.parametrize("owner", ["", "x", "A" * 16, "a" * 15, "a" * 17, "../", "a" * 16 + "/b"])
def test_an_owner_is_sixteen_digits(owner: str) -> None:
    try:
        assert ObjectKey.staged(owner, NOW, random.Random(1)).created_ms is None
    except BadKey:
        return


ID = "adh9f8BMS4anaUnD8KWfWg"
HOSTILE = [
    "", "/", "wal", "wal/", "/wal/aa/b", "wal//x", "../x", "wal/../x", "wal/./x", "backup/..",
    "backup/.", "backup/a/../b", "backup/a//b", "backup/a/", "backup/%2e%2e/x", "backup/a\\b",
    "backup/a\0b", "backup/a\nb", "backup/a\n", "backup/é", "backup/A", "backup/a b", "backup/.a",
    "backup/a..b", "backup/-a", "backup/a.", "other/a", "WAL/aa/x", "backup/" + "a" * 600,
    "backup/" + "/".join("abcdefgh"), "wal/named", "backup/ａ", "backup/a:b", "backup/~",
    f"wal/00/{NOW:012x}{'11' * 10}",  # the digits are not the id's last
    f"wal/11/{NOW:012X}{'11' * 10}".replace("b", "B"),
    f"wal/11/{NOW:012x}{'11' * 10}\n",
    f"wal/11/{NOW:012x}{'11' * 11}",
    f"staging/{'a' * 16}/00/{NOW:012x}{'11' * 10}",
    f"../t-{ID}/0/{0:020}-{ID}.log",
    f".-{ID}/0/{0:020}-{ID}.log",
    f"..-{ID}/0/{0:020}-{ID}.log",
    f"-{ID}/0/{0:020}-{ID}.log",
    f"{'t' * 250}-{ID}/0/{0:020}-{ID}.log",
    f"t-{ID}/00/{0:020}-{ID}.log",
    f"t-{ID}/-1/{0:020}-{ID}.log",
    f"t-{ID}/2147483648/{0:020}-{ID}.log",
    f"t-{ID}/0/{1 << 63:020}-{ID}.log",
    f"t-{ID}/0/{0:019}-{ID}.log",
    f"t-{ID}/0/{0:020}-{ID[:-1]}h.log",  # bits that have no meaning
    f"t-{ID}/0/{0:020}-{ID}.logs",
    f"t-{ID}/0/{0:020}-{ID}.log\n",
    f"t-{ID}/0/../{0:020}-{ID}.log",
    f"t é-{ID}/0/{0:020}-{ID}.log",
    f"tiered/t-{ID}/0/{0:020}-{ID}.log",
    f"kafka-tiered-storage/t-{ID}/{0:020}-{ID}.log",
    f"kafka-tiered-storage/t-0-{ID}/{0:020}-{ID}.rsm-manifest",
    f"kafka-tiered-storage/..-0-{ID}/../{0:020}-{ID}.log",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_keys_are_refused(text: str) -> None:
    with pytest.raises(BadKey):
        ObjectKey.parse(text)
    assert known(text) is None


def test_a_time_that_does_not_fit_is_refused() -> None:
    for clock_ms in (-1, 1 << 48):
        with pytest.raises(BadKey):
            ObjectKey.new("wal", clock_ms, random.Random(1))


def test_prefixes() -> None:
    segments = (
        f"t-{ID}/",
        f"t-{ID}/42/",
        "kafka-tiered-storage/",
        f"kafka-tiered-storage/t-0-{ID}/",
    )
    for good in ("", "wal/", "wal/7f/", "backup/metadata/0/", *segments):
        assert checked_prefix(good) == good
    for bad in (f"t-{ID}", f"t-{ID}/x/", f"t-{ID}/0/0/", f"../t-{ID}/", f"t\0-{ID}/"):
        with pytest.raises(BadKey):
            checked_prefix(bad)
    for bad in ("wal", "/", "wal//", "../", "wal/../", "other/", "backup/../x/", "wal/" * 90):
        with pytest.raises(BadKey):
            checked_prefix(bad)


ALPHABET = "wal/staging/backup/.././%2e\\\0\n0189abcdefAF~:é \t-_"


def mutated(rng: random.Random) -> str:
    """A valid key with a few characters changed, or malicious characters in any order."""
    if rng.random() < 0.5:
        segment = f"t-{ID}/42/{5:020}-{ID}.log"
        text = list(rng.choice([ObjectKey.new("wal", NOW, rng).text, segment]))
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(3)] = rng.choice(ALPHABET)
        return "".join(text)
    head = rng.choice(["", "wal/", "staging/", "backup/", "backup/a/", "/"])
    return head + "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(12)))


def test_whatever_is_accepted_is_harmless_as_a_path() -> None:
    rng = random.Random(11)
    accepted = 0
    for _ in range(100_000):
        text = mutated(rng)
        key = known(text)
        if key is None:
            continue
        accepted += 1
        assert key.text == text
        assert text.isascii()
        assert text.isprintable()
        assert not {"", ".", ".."} & set(text.split("/"))
        assert not set(text) & set("\\%:~ \0")
        assert text == text.lower() or key.segment
    assert accepted > 1000  # valid keys are tested too


@given(st.text(max_size=600))
def test_any_text_is_a_key_or_is_refused(text: str) -> None:
    key = known(text)
    assert key is None or ObjectKey.parse(key.text) == key
