"""Components that are made here, byte by byte, so that a test can say what is in them."""

import random


def number(value, name="number", wide=False):
    """A component with one function, which returns this number (below 64); `wide` makes it an `s64` instead of an `s32`."""
    core_type, lifted_type, const = (0x7E, 0x78, 0x42) if wide else (0x7F, 0x7A, 0x41)
    module = b"\0asm\x01\0\0\0" + b"".join(
        [
            section(1, bytes([1, 0x60, 0, 1, core_type])),
            section(3, bytes([1, 0])),
            section(7, bytes([1]) + text(name) + bytes([0, 0])),
            section(10, bytes([1, 4, 0, const, value, 0x0B])),
        ]
    )
    return b"\0asm\x0d\0\x01\0" + b"".join(
        [
            section(1, module),
            section(2, bytes([1, 0, 0, 0])),
            section(6, bytes([1, 0, 0, 1, 0]) + text(name)),
            section(7, bytes([1, 0x40, 0, 0, lifted_type])),
            section(8, bytes([1, 0, 0, 0, 0, 0])),
            section(11, bytes([1, 0]) + text(name) + bytes([1, 0, 0])),
        ]
    )


def large(value, size=400_000):
    """The same, with bytes after it that mean nothing, and that no mistake leaves as they are."""
    return number(value) + section(0, text("padding") + random.Random(value).randbytes(size))


def wat(value):
    """The same as text, with the comment before it that such files often have."""
    return f""";; Returns a number.
(component
  (core module $code (func (export "number") (result i32) (i32.const {value})))
  (core instance $guest (instantiate $code))
  (func (export "number") (result s32) (canon lift (core func $guest "number"))))
""".encode()


def section(kind, payload):
    return bytes([kind]) + leb(len(payload)) + payload


def text(name):
    return leb(len(name)) + name.encode()


def leb(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])
