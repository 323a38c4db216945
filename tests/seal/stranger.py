"""A decoder of encrypted rows, blobs and codes that was written from `docs/envelope.md` and the specifications
that it names (AES, GCM, XAES-256-GCM, HKDF, HMAC) alone. Reads them as JSON, and prints what they say."""

import base64
import hashlib
import hmac
import json
import re
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
    if kind == "Edm.Double":
        bits = bytes.fromhex(value)
        number = struct.unpack(">d", bits)[0]
        if number != number:
            bits = bytes.fromhex("7ff8000000000000")
        elif number == 0:
            bits = bytes(8)
        return b"\x04" + bits
    if kind == "Edm.DateTime":
        return b"\x05" + struct.pack(">q", value)
    if kind == "Edm.Guid":
        return b"\x06" + bytes.fromhex(value.replace("-", ""))
    if kind == "Edm.Binary":
        return b"\x07" + bytes.fromhex(value)
    if kind == "Edm.String":
        return b"\x08" + value.encode()
    raise SystemExit(f"no rule for {kind}")


def typed_plain(plain):
    """The type and the value of decrypted bytes; the values of Binary, Double and Guid as hexadecimal digits."""
    tag, value = plain[0], plain[1:]
    if tag & 0x80:
        value = value[:value.rindex(0x80)]
    tag &= 0x7F
    if tag == 0 and not value:
        return None, None
    if tag == 1 and value in (b"\0", b"\1"):
        return "Edm.Boolean", value == b"\1"
    if tag == 2:
        return "Edm.Int32", struct.unpack(">i", value)[0]
    if tag == 3:
        return "Edm.Int64", struct.unpack(">q", value)[0]
    if tag == 4 and len(value) == 8:
        return "Edm.Double", value.hex()
    if tag == 5:
        return "Edm.DateTime", struct.unpack(">q", value)[0]
    if tag == 6 and len(value) == 16:
        return "Edm.Guid", value.hex()
    if tag == 7:
        return "Edm.Binary", value.hex()
    if tag == 8:
        return "Edm.String", value.decode()
    if tag == 9:
        return "Edm.String", value.decode("utf-16-le")
    raise SystemExit(f"no rule for tag {tag}")


def open_envelope(root, table, row, name, envelope):
    identity = expand(root, b"azt-enc-v1/kid")[:8]
    if envelope[:3] != b"\xae\x7e\x01" or envelope[3:11] != identity:
        raise SystemExit(f"{name} is no envelope of this key")
    bound = b"azt-enc-v1\0" + b"\x01" + identity
    bound += counted(table) + counted(row["pk"]) + counted(row["rk"]) + counted(name)
    key = expand(root, b"azt-enc-v1/enc")
    return typed_plain(open_xaes(key, envelope[11:35], envelope[35:], bound))


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


def is_envelope(kind, value):
    return kind == "Edm.Binary" and value.startswith("ae7e")


# Blind token keys of scopes.

TOKEN = re.compile(r"\{(\w+):hmac\}")


def read_scoped(given):
    """Rows of several scopes of keys. The program's own knowledge is given with them: the scope of a
    PartitionKey, and the templates of its keys."""
    for row in given["rows"]:
        family = next(one for one in given["families"] if row["rk"].startswith(one["begins"]))
        scope = row["pk"] if row["pk"] in given["scopes"] else "default"
        index_scope = "default" if TOKEN.search(family["pk"]) else scope
        root = bytes.fromhex(given["scopes"][scope]["root"])
        index = bytes.fromhex(given["scopes"][index_scope]["index"])
        check_seal(root, row["table"], row)
        told = {}
        for name, (kind, value) in row["properties"].items():
            if is_envelope(kind, value):
                kind, value = open_envelope(root, row["table"], row, name, bytes.fromhex(value))
            told[name] = kind, value
        for key, template in ((row["pk"], family["pk"]), (row["rk"], family["rk"])):
            for field in TOKEN.findall(template):
                name = field.capitalize()
                if token(index, given["version"], given["declared"], name, *told[name]) not in key:
                    raise SystemExit(f"{name} has another token in {key}")
        if "PhoneBlind" in told:
            if told["PhoneBlind"][1] != short_token(index, given["declared"], "Phone", *told["Phone"], 8):
                raise SystemExit("PhoneBlind is another token")
        values = {name: value for name, (_, value) in told.items() if name not in ("EntitySeal", "PhoneBlind")}
        print("scoped", index_scope, row["pk"], json.dumps(values, sort_keys=True))


# Codes over work.

def code_of(root, kind, fields):
    identity = expand(root, b"azt-enc-v1/kid")[:8]
    text = b"azt-work-v1\0" + bytes([kind]) + identity + fields
    return b"\xae\x6e\x01" + identity + hmac.digest(expand(root, b"azt-enc-v1/work"), text, hashlib.sha256)


def check_code(what, root, kind, fields, found):
    if not hmac.compare_digest(code_of(root, kind, fields), found):
        raise SystemExit(f"the code of {what} is another one")


def message_fields(texts, version, body, sent):
    """The fields of a message, and what its kind has added."""
    fields = b"".join(map(counted, texts)) + struct.pack(">I", version) + hashlib.sha256(body).digest()
    return (fields, 0) if sent is None else (fields + struct.pack(">q", sent), 0x80)


def value_of(row, name):
    return row["properties"].get(name, [None, None])[1]


def place_of(table, row, told):
    identity = row["rk"].removeprefix("~e3_")
    texts = [identity, told["entity_type"], table, row["pk"], told["row_key"]]
    return b"".join(map(counted, texts + [told["to_table"], told["to_partition"], told["to_row"]]))


def held_of(root, source):
    """The values of an entity without `seal`: those that are stored as an envelope."""
    held = []
    for name, (kind, value) in source["properties"].items():
        if is_envelope(kind, value):
            kind, value = open_envelope(root, source["table"], source, name, bytes.fromhex(value))
            plain = b"\0" if kind is None else type_and_value(kind, value)
            held.append((name.encode(), counted(name) + struct.pack(">I", len(plain)) + plain))
    return struct.pack(">I", len(held)) + b"".join(part for _, part in sorted(held))


def members_of(text):
    """The members of a JSON object, each as the text that it stands as."""
    decoder, at, found = json.JSONDecoder(), text.index("{") + 1, {}
    skip = re.compile(r"[\s,:]*")
    while True:
        at = skip.match(text, at).end()
        if text[at] == "}":
            return found
        name, at = decoder.raw_decode(text, at)
        begin = skip.match(text, at).end()
        _, at = decoder.raw_decode(text, begin)
        found[name] = text[begin:at]


def read_work(given):
    def root(partition):
        return bytes.fromhex(given["roots"].get(partition, given["roots"]["default"]))

    # The names of tables are compared without regard to case there.
    def physical(table):
        return table.lower()

    for row in given["messages"]:
        name, body = value_of(row, "Type"), value_of(row, "Body")
        code, version = bytes.fromhex(value_of(row, "Mac")), value_of(row, "Version")
        if name != "entable.move":
            texts = [physical(row["table"]), row["pk"], row["rk"].removeprefix("~e3_"), name]
            fields, added = message_fields(texts, version, body.encode(), value_of(row, "Sent"))
            check_code(name, root(row["pk"]), 1 + added, fields, code)
            print("message", name, "expires" if added else "stays")
            continue
        told = json.loads(body)
        place = place_of(physical(row["table"]), row, {**told, "to_table": physical(told["to_table"])})
        source = next(one for one in given["rows"] if (one["pk"], one["rk"]) == (row["pk"], told["row_key"]))
        check_code("a move", root(row["pk"]), 3, place + held_of(root(row["pk"]), source), code)
        consent = bytes.fromhex(value_of(row, "MacTo"))
        check_code("a consent", root(told["to_partition"]), 4, place + code, consent)
        arrival = next(one for one in given["rows"] if one["rk"] == "~e4_" + row["rk"].removeprefix("~e3_"))
        if arrival["pk"] != told["to_partition"]:
            raise SystemExit("the arrival is elsewhere")
        found = bytes.fromhex(value_of(arrival, "Mac"))
        check_code("an arrival", root(told["to_partition"]), 5, place, found)
        print("move", told["to_partition"], "arrived")
    for text in given["queued"]:
        members = members_of(text)
        name, sent = json.loads(members["type"]), members.get("sent")
        texts = [given["queue"], json.loads(members["id"]), name]
        body = members.get("body", "null").encode()
        sent = None if sent is None else json.loads(sent)
        fields, added = message_fields(texts, json.loads(members["version"]), body, sent)
        code = json.loads(members["mac"])
        code = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
        check_code(name, root("default"), 2 + added, fields, code)
        print("queued", name, "expires" if added else "stays")


# Encrypted blobs.

CHUNK = 65536


def read_blob(given):
    row, name = given["row"], given["name"]
    root, stored = bytes.fromhex(given["root"]), bytes.fromhex(given["bytes"])
    sealed = bytes.fromhex(value_of(row, name + "Key"))
    kind, key = open_envelope(root, row["table"], row, name + "Key", sealed)
    key = bytes.fromhex(key)
    if kind != "Edm.Binary" or len(key) != 33 or key[0] != 1:
        raise SystemExit("the key of the content is none")
    if hashlib.sha256(stored).hexdigest() != value_of(row, name + "Hash"):
        raise SystemExit("the hash of the content is another one")
    length, content = value_of(row, name + "Length"), b""
    chunks = max(1, -(-length // CHUNK))
    if len(stored) != length + 16 * chunks:
        raise SystemExit("the content has another length")
    for number in range(chunks):
        part = stored[number * (CHUNK + 16):(number + 1) * (CHUNK + 16)]
        nonce = bytes(15) + struct.pack(">Q", number) + bytes([number == chunks - 1])
        content += open_xaes(key[1:], nonce, part, b"azt-blob-v1\0")
    print("blob", length, hashlib.sha256(content).hexdigest())


def main():
    given = json.load(sys.stdin)
    if "scoped" in given:
        read_scoped(given["scoped"])
    if "work" in given:
        read_work(given["work"])
    for blob in given.get("blobs", []):
        read_blob(blob)
    if "rows" in given:
        read_rows(given)


def read_rows(given):
    root, index = bytes.fromhex(given["root"]), bytes.fromhex(given["index"])
    for row in given["rows"]:
        check_seal(root, row["table"], row)
        told = {}
        for name in sorted(row["properties"]):
            kind, value = row["properties"][name]
            if is_envelope(kind, value):
                _, value = open_envelope(root, row["table"], row, name, bytes.fromhex(value))
            told[name] = value
        del told["EntitySeal"]
        companion = told.pop("EmailBlind")
        if companion != short_token(index, given["declared"], "Email", "Edm.String", told["Email"], 8):
            raise SystemExit("EmailBlind is another token")
        told["token"] = token(index, 1, given["declared"], "Email", "Edm.String", told["Email"]) in row["rk"]
        print(row["table"], row["pk"], json.dumps(told, ensure_ascii=True, sort_keys=True))


main()
