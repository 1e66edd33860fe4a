"""Records of the DTLS chunk, made and opened by Python's `cryptography`: a second opinion on crates/dtls.

It was written from RFC 9147 and draft-ietf-tsvwg-sctp-dtls-chunk alone, and shares nothing with the Rust sources.

Each line of standard input asks for one thing, and each line of standard output answers it:

    seal SUITE KEY SN_KEY IV EPOCH NUMBER CHUNKS   a DTLS chunk without its padding
    open SUITE KEY SN_KEY IV EPOCH NUMBER CHUNK    the chunks inside, if the record has that number; else "refused"

All but SUITE, EPOCH and NUMBER are in hexadecimal.

Example: echo 'seal aes-128-gcm 00.. 00.. 00.. 3 0 0b000004' | python records.py
`python records.py --vectors` prints a table of such lines with their answers: crates/dtls/tests/records.txt.
"""

import hashlib
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

KEY_BYTES = {"aes-128-gcm": 16, "aes-256-gcm": 32, "chacha20-poly1305": 32}
APPLICATION_DATA = 23


def aead(suite, key):
    return ChaCha20Poly1305(key) if suite == "chacha20-poly1305" else AESGCM(key)


def mask(suite, sn_key, sample):
    """RFC 9147 section 4.2.3. `cryptography` takes the counter and the nonce of ChaCha20 as one value of 16 bytes."""
    if suite == "chacha20-poly1305":
        encryptor = Cipher(algorithms.ChaCha20(sn_key, sample), mode=None).encryptor()
        return encryptor.update(bytes(2))
    encryptor = Cipher(algorithms.AES(sn_key), modes.ECB()).encryptor()
    return encryptor.update(sample)[:2]


def nonce(iv, number):
    return bytes(a ^ b for a, b in zip(iv, number.to_bytes(len(iv), "big"), strict=True))


def header(epoch, number):
    return bytes([0b00101000 | epoch % 4]) + (number % 2**16).to_bytes(2, "big")


def seal(suite, key, sn_key, iv, epoch, number, chunks):
    plain = header(epoch, number)
    sealed = aead(suite, key).encrypt(nonce(iv, number), chunks + bytes([APPLICATION_DATA]), plain)
    masked = bytes(a ^ b for a, b in zip(plain[1:], mask(suite, sn_key, sealed[:16]), strict=True))
    record = plain[:1] + masked + sealed
    return bytes([0x41, 0]) + (len(record) + 5).to_bytes(2, "big") + bytes(1) + record


def unseal(suite, key, sn_key, iv, epoch, number, chunk):
    record = chunk[5:]
    plain = record[:1] + bytes(a ^ b for a, b in zip(record[1:3], mask(suite, sn_key, record[3:19]), strict=True))
    if plain != header(epoch, number) or int.from_bytes(chunk[2:4], "big") != len(chunk):
        return None
    try:
        content = aead(suite, key).decrypt(nonce(iv, number), record[3:], plain)
    except InvalidTag:
        return None
    content = content.rstrip(b"\0")
    return content[:-1] if content[-1:] == bytes([APPLICATION_DATA]) else None


def answer(line):
    verb, suite, key, sn_key, iv, epoch, number, given = line.split()
    do = {"seal": seal, "open": unseal}[verb]
    keys = [bytes.fromhex(part) for part in (key, sn_key, iv)]
    found = do(suite, *keys, int(epoch), int(number), bytes.fromhex(given))
    return "refused" if found is None else found.hex()


def vectors():
    """Some records of every suite: short and long ones, numbers beyond 16 and 32 bits, several epochs."""
    for suite, key_bytes in KEY_BYTES.items():
        for at, (epoch, number, length) in enumerate([(3, 0, 4), (4, 1, 20), (5, 65_537, 100), (6, 2**33 + 7, 1_400)]):
            made = hashlib.shake_256(f"{suite} {at}".encode()).digest(2 * key_bytes + 12 + length)
            key, sn_key, rest = made[:key_bytes], made[key_bytes : 2 * key_bytes], made[2 * key_bytes :]
            line = f"seal {suite} {key.hex()} {sn_key.hex()} {rest[:12].hex()} {epoch} {number} {rest[12:].hex()}"
            print(line, answer(line))


if __name__ == "__main__":
    if sys.argv[1:] == ["--vectors"]:
        vectors()
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        for line in sys.stdin:
            print(answer(line), flush=True)
