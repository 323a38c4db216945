"""A decoder of encrypted rows that was written from `docs/envelope.md` and the specifications that it names
(AES, GCM, XAES-256-GCM, HKDF, HMAC) alone. Reads rows as JSON, and prints what they say."""

import hashlib
import hmac
import json
import struct
import sys


# AES-256 (FIPS 197), one block at a time, encryption only.

def times_two(byte):
    return (byte << 1 ^ 0x1B) & 0xFF if byte & 0x80 else byte << 1


def make_sbox():
    powers, inverse, value = [], [0] * 256, 1
    for _ in range(255):
        powers.append(value)
        value ^= times_two(value)
    for at, power in enumerate(powers):
        inverse[power] = powers[(255 - at) % 255]
    box = []
    for byte in range(256):
        x = inverse[byte]
        rotated = [(x << n | x >> 8 - n) & 0xFF for n in range(5)]
        box.append(rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4] ^ 0x63)
    return box


SBOX = make_sbox()


def round_keys(key):
    words, constant = [list(key[at:at + 4]) for at in range(0, 32, 4)], 1
    for at in range(8, 60):
        word = list(words[-1])
        if at % 8 == 0:
            word = [SBOX[byte] for byte in word[1:] + word[:1]]
            word[0] ^= constant
            constant = times_two(constant)
        elif at % 8 == 4:
            word = [SBOX[byte] for byte in word]
        words.append([a ^ b for a, b in zip(words[at - 8], word)])
    return [sum(words[at:at + 4], []) for at in range(0, 60, 4)]


def encrypt_block(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        state = [SBOX[state[(at + 4 * (at % 4)) % 16]] for at in range(16)]
        if number < 14:
            mixed = []
            for column in range(0, 16, 4):
                a = state[column:column + 4]
                for row in range(4):
                    b, c = a[row], a[(row + 1) % 4]
                    mixed.append(times_two(b) ^ times_two(c) ^ c ^ a[(row + 2) % 4] ^ a[(row + 3) % 4])
            state = mixed
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


# GCM (NIST SP 800-38D), decryption with a nonce of 12 bytes.

def multiply(x, y):
    product = 0
    for at in range(127, -1, -1):
        if y >> at & 1:
            product ^= x
        x = x >> 1 ^ (0xE1 << 120 if x & 1 else 0)
    return product


def open_gcm(key, nonce, sealed, bound):
    keys = round_keys(key)
    ciphertext, tag = sealed[:-16], sealed[-16:]
    subkey = int.from_bytes(encrypt_block(keys, bytes(16)), "big")
    hashed = 0
    blocks = [part + bytes(-len(part) % 16) for part in (bound, ciphertext)]
    blocks.append(struct.pack(">QQ", 8 * len(bound), 8 * len(ciphertext)))
    text = b"".join(blocks)
    for at in range(0, len(text), 16):
        hashed = multiply(hashed ^ int.from_bytes(text[at:at + 16], "big"), subkey)
    mask = encrypt_block(keys, nonce + struct.pack(">I", 1))
    expected = bytes(a ^ b for a, b in zip(hashed.to_bytes(16, "big"), mask))
    if not hmac.compare_digest(expected, tag):
        raise SystemExit("authentication")
    plain = b""
    for number, at in enumerate(range(0, len(ciphertext), 16), 2):
        stream = encrypt_block(keys, nonce + struct.pack(">I", number))
        plain += bytes(a ^ b for a, b in zip(ciphertext[at:at + 16], stream))
    return plain


def open_xaes(key, nonce, sealed, bound):
    """XAES-256-GCM as C2SP specifies it."""
    keys = round_keys(key)
    doubled = int.from_bytes(encrypt_block(keys, bytes(16)), "big") << 1
    if doubled >> 128:
        doubled = (doubled ^ 0x87) & (1 << 128) - 1
    derived = b""
    for number in (1, 2):
        block = int.from_bytes(bytes([0, number, ord("X"), 0]) + nonce[:12], "big") ^ doubled
        derived += encrypt_block(keys, block.to_bytes(16, "big"))
    return open_gcm(derived, nonce[12:], sealed, bound)


# The page's own definitions.

def expand(root, info):
    return hmac.digest(root, info + b"\x01", hashlib.sha256)


def counted(text):
    return struct.pack(">I", len(text.encode())) + text.encode()


def type_and_value(kind, value):
    """A value as seals and tokens take it."""
    if kind == "Edm.Boolean":
        return bytes([1, value])
    if kind == "Edm.Int32":
        return b"\x02" + struct.pack(">i", value)
    if kind == "Edm.Int64":
        return b"\x03" + struct.pack(">q", value)
    if kind == "Edm.Binary":
        return b"\x07" + bytes.fromhex(value)
    if kind == "Edm.String":
        return b"\x08" + value.encode()
    raise SystemExit(f"no rule for {kind}")


def read_plain(plain):
    tag, value = plain[0], plain[1:]
    if tag & 0x80:
        value = value[:value.rindex(0x80)]
    tag &= 0x7F
    if tag == 0:
        return None
    if tag == 2:
        return struct.unpack(">i", value)[0]
    if tag == 8:
        return value.decode()
    if tag == 9:
        return value.decode("utf-16-le")
    raise SystemExit(f"no rule for tag {tag}")


def open_envelope(root, table, row, name, envelope):
    identity = expand(root, b"azt-enc-v1/kid")[:8]
    if envelope[:3] != b"\xae\x7e\x01" or envelope[3:11] != identity:
        raise SystemExit(f"{name} is no envelope of this key")
    bound = b"azt-enc-v1\0" + b"\x01" + identity
    bound += counted(table) + counted(row["pk"]) + counted(row["rk"]) + counted(name)
    key = expand(root, b"azt-enc-v1/enc")
    return read_plain(open_xaes(key, envelope[11:35], envelope[35:], bound))


def check_seal(root, table, row):
    identity = expand(root, b"azt-enc-v1/kid")[:8]
    text = b"azt-seal-v1\0" + identity + counted(table) + counted(row["pk"]) + counted(row["rk"])
    names = sorted((name for name in row["properties"] if name != "EntitySeal"), key=str.encode)
    text += struct.pack(">I", len(names))
    for name in names:
        value = type_and_value(*row["properties"][name])
        text += counted(name) + struct.pack(">I", len(value)) + value
    expected = b"\xae\x5e\x01" + identity + hmac.digest(expand(root, b"azt-enc-v1/seal"), text, hashlib.sha256)
    if bytes.fromhex(row["properties"]["EntitySeal"][1]) != expected:
        raise SystemExit(f"the seal of {row['rk']} is another one")


def digits(bits, count, spare):
    """The first bits of a number of 128, in base32hex."""
    padded = bits << 2 | spare
    return "".join("0123456789abcdefghijklmnopqrstuv"[padded >> 125 - 5 * at & 31] for at in range(count))


def token(root, version, table, field, kind, value):
    key = expand(root, b"azt-idx-v1\0" + counted(table) + counted(field))
    code = int.from_bytes(hmac.digest(key, type_and_value(kind, value), hashlib.sha256)[:16], "big")
    return digits(code, 26, (version - 1) % 4)


def short_token(root, table, field, kind, value, characters):
    key = expand(root, b"azt-idx-v1/short\0" + counted(table) + counted(field))
    code = int.from_bytes(hmac.digest(key, type_and_value(kind, value), hashlib.sha256)[:16], "big")
    return digits(code, characters, 0)


def main():
    given = json.load(sys.stdin)
    root, index = bytes.fromhex(given["root"]), bytes.fromhex(given["index"])
    for row in given["rows"]:
        check_seal(root, row["table"], row)
        told = {}
        for name in sorted(row["properties"]):
            kind, value = row["properties"][name]
            if kind == "Edm.Binary" and value.startswith("ae7e"):
                value = open_envelope(root, row["table"], row, name, bytes.fromhex(value))
            told[name] = value
        del told["EntitySeal"]
        companion = told.pop("EmailBlind")
        if companion != short_token(index, given["declared"], "Email", "Edm.String", told["Email"], 8):
            raise SystemExit("EmailBlind is another token")
        told["token"] = token(index, 1, given["declared"], "Email", "Edm.String", told["Email"]) in row["rk"]
        print(row["table"], row["pk"], json.dumps(told, ensure_ascii=True, sort_keys=True))


main()
