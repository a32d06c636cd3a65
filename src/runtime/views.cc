// SPDX-License-Identifier: Apache-2.0
#include "runtime/views.h"

#include <algorithm>

namespace hasten {
namespace {

bool lacks_strides(const DLTensor& view) { return view.ndim > 0 && !view.strides; }

bool runs_backwards(const DLTensor& view) {
  return view.strides && std::any_of(view.strides, view.strides + view.ndim,
                                     [](int64_t stride) { return stride < 0; });
}

bool needs_work(const DLTensor& view) { return lacks_strides(view) || runs_backwards(view); }

}  // namespace

Status StridedViews::set(std::span<const DLTensor> given) {
  views_ = given;
  return std::ranges::any_of(given, needs_work) ? fill() : Status();
}

Status StridedViews::fill() {
  const std::span<const DLTensor> given = views_;
  size_t axes = 0;
  for (const DLTensor& view : given) axes += static_cast<size_t>(view.ndim);
  if (given.size() > few_views_.size()) many_views_.resize(given.size());
  if (axes > few_strides_.size()) many_strides_.resize(axes);
  DLTensor* to = many_views_.empty() ? few_views_.data() : many_views_.data();
  int64_t* strides = many_strides_.empty() ? few_strides_.data() : many_strides_.data();
  std::ranges::copy(given, to);
  views_ = {to, given.size()};
  for (DLTensor& view : std::span(to, given.size())) {
    if (runs_backwards(view)) {
      HASTEN_TRY(Tensor copy, Tensor::copy_of(view));
      view = copy.view();
      copies_.push_back(std::move(copy));
    }
    if (!lacks_strides(view)) continue;
    view.strides = strides;
    strides += view.ndim;
    int64_t step = 1;
    for (int32_t a = view.ndim - 1; a >= 0; --a) {
      view.strides[a] = step;
      step *= view.shape[a];
    }
  }
  return {};
}

}  // namespace hasten
