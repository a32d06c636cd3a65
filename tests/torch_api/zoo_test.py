# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 1500 COST 120
"""Networks that people have: from timm and transformers, tiny, with random weights."""

import sys
from pathlib import Path

import pytest
import torch

import hasten.torch as ait
from hasten.torch.backend import ONNXRuntimeBackend, ONNXRuntimeBackendConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
import torchvision_operators  # noqa: E402,F401  Before timm.

import timm  # noqa: E402
import transformers  # noqa: E402


def strategy():
    backend = ONNXRuntimeBackend(ONNXRuntimeBackendConfig(options={"threads": 1}))
    return ait.OneBackendStrategy(backend).enable_performance_validation(False)


IMAGES = {"resnet18": (64, {}), "mobilenetv3_small_050": (64, {}),
          "vit_tiny_patch16_224": (32, {"img_size": 32, "patch_size": 8, "depth": 2,
                                        "embed_dim": 32, "num_heads": 2})}


@pytest.mark.parametrize("name", IMAGES)
def test_image_networks_answer_as_before(name):
    size, settings = IMAGES[name]
    torch.manual_seed(0)
    network = timm.create_model(name, pretrained=False, num_classes=10, **settings).eval()
    original = network.forward
    model = ait.Module(network, name, strategy=strategy())
    ait.tune(model, [torch.randn(3, size, size) for _ in range(3)])
    assert model.tuning_state is ait.State.TUNED, model.tuning_report
    with torch.no_grad():
        for rows in (1, 2, 5):
            x = torch.randn(rows, 3, size, size)
            torch.testing.assert_close(model(x), original(x), rtol=1e-3, atol=1e-4)
    assert model.unseen_calls == 0


def test_bert_answers_as_before_in_its_own_type():
    torch.manual_seed(0)
    network = transformers.BertModel(transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        vocab_size=100, max_position_embeddings=64)).eval()
    original = network.forward
    model = ait.Module(network, "bert", strategy=strategy())

    def words(rows, length):
        mask = torch.ones(rows, length, dtype=torch.int64)
        mask[:, length // 2:] = rows % 2
        return {"input_ids": torch.randint(0, 100, (rows, length)), "attention_mask": mask}

    ait.tune(model, [((), words(rows, length)) for rows, length in ((1, 8), (2, 12), (3, 8))])
    assert model.tuning_state is ait.State.TUNED, model.tuning_report
    with torch.no_grad():
        for rows, length in ((1, 8), (4, 17)):
            given = words(rows, length)
            found, expected = model(**given), original(**given)
            assert type(found) is type(expected)
            torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state,
                                       rtol=1e-3, atol=1e-4)
    assert model.unseen_calls == 0


def test_gpt2_generates_what_it_did_with_its_cache():
    torch.manual_seed(0)
    network = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=2, vocab_size=100, n_positions=64, bos_token_id=0,
        eos_token_id=0)).eval()
    settings = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    words = torch.randint(1, 100, (2, 6))
    expected = network.generate(words, **settings)
    model = ait.Module(network, "gpt2", strategy=strategy())
    ait.tune(lambda x: model.generate(x, **settings), [((words,), {})])
    assert torch.equal(model.generate(words, **settings), expected)
    assert "DynamicCache" in str(model.tuning_report)
