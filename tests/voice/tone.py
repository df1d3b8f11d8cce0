"""A second of 440 Hz as a chat would record it: a real Ogg file with Opus in it.

Made once from a WAV file of that sine (mono, 48 kHz, 16 bits) with opus-tools 0.2 of Debian 12:
`opusenc --bitrate 16 --discard-comments --padding 0 --serial 7 tone.wav tone.ogg`.
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("tone.ogg")


def tone() -> bytes:
    """The recording."""
    return FILE.read_bytes()
