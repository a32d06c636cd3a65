# SPDX-License-Identifier: Apache-2.0
"""Lets `import torchvision` succeed under a CPU build of torch; import this module first.

The wheel on PyPI is linked against CUDA libraries, so its operators do not load, and the import
ends with "operator torchvision::nms does not exist". Classification networks call none of them:
their schemas are enough."""
import torch

_SCHEMAS = """
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt
    pooled_width, int sampling_ratio, bool aligned) -> Tensor
_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt
    pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int
    sampling_ratio, bool aligned) -> Tensor
roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt
    pooled_width) -> (Tensor, Tensor)
_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt
    pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height,
    SymInt width) -> Tensor
ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt
    pooled_width, int sampling_ratio) -> (Tensor, Tensor)
_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale,
    SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt
    channels, SymInt height, SymInt width) -> Tensor
ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt
    pooled_width) -> (Tensor, Tensor)
_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale,
    SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt
    height, SymInt width) -> Tensor
deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt
    stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w,
    SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor
_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask,
    Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt
    dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) ->
    (Tensor, Tensor, Tensor, Tensor, Tensor)
_cuda_version() -> int
"""


def _schemas():
    """One a line; an indented line continues the one before."""
    return _SCHEMAS.replace("\n    ", " ").strip().split("\n")


def _define():
    try:
        torch._C._dispatch_find_schema_or_throw("torchvision::nms", "")
        return None  # A torchvision that loads properly.
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for schema in _schemas():
            library.define(schema)
        return library


_library = _define()  # The operators live as long as this object.
