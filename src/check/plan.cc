// SPDX-License-Identifier: Apache-2.0
#include "check/plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

namespace hasten {
namespace {

constexpr int64_t kMaxSearch = 4096;  // Sizes looked through for a free one; samples are few.

// The sizes of one symbol, in order and without doubles.
class Sizes {
 public:
  explicit Sizes(const SymbolRange& range)
      : symbol_(range.symbol), seen_(range.seen.begin(), range.seen.end()) {}

  void add(int64_t size, const char* why) {
    if (taken_.insert(size).second) planned_.push_back({symbol_, size, why});
  }
  bool is_new(int64_t size) const { return !taken_.contains(size) && !seen_.contains(size); }
  std::vector<PlannedSize> planned() && { return std::move(planned_); }

 private:
  std::string symbol_;
  std::set<int64_t> seen_, taken_;
  std::vector<PlannedSize> planned_;
};

std::optional<int64_t> first_odd(const Sizes& sizes, int64_t low, int64_t high) {
  // 1 is the size that every exporter specialises for; it shows nothing about odd ones.
  int64_t size = std::max<int64_t>(low, 3);
  size += size % 2 == 0 ? 1 : 0;
  const int64_t last = std::min(high, size + kMaxSearch);
  for (; size <= last; size += 2) {
    if (sizes.is_new(size)) return size;
  }
  return std::nullopt;
}

std::optional<int64_t> nearest_to_the_middle(const Sizes& sizes, int64_t low, int64_t high) {
  const int64_t middle = low + (high - low) / 2;
  for (int64_t away = 0; away <= kMaxSearch; ++away) {
    for (int64_t size : {middle + away, middle - away}) {
      if (size >= low && size <= high && sizes.is_new(size)) return size;
    }
  }
  return std::nullopt;
}

std::vector<PlannedSize> plan_one(const SymbolRange& range) {
  int64_t low = range.min, high = range.max;
  if (!range.seen.empty()) {
    const auto [least, most] = std::minmax_element(range.seen.begin(), range.seen.end());
    // A symbol that was declared without a range has no ends but those that were seen.
    if (high < 1) low = *least, high = *most;
    low = std::min(low, *least);
    high = std::max(high, *most);
  }
  if (high < 1) return {};
  const bool ends_were_seen = std::count(range.seen.begin(), range.seen.end(), low) > 0 &&
                              std::count(range.seen.begin(), range.seen.end(), high) > 0;

  Sizes sizes(range);
  sizes.add(low, "smallest");
  sizes.add(high, "largest");
  // Where the ends are no more than what happened to be recorded, nobody promised that
  // larger sizes never come: look beyond if there is no room inside.
  std::optional<int64_t> odd = first_odd(sizes, low, high);
  if (!odd && ends_were_seen) odd = first_odd(sizes, high + 1, high + kMaxSearch);
  if (odd) sizes.add(*odd, "odd");
  std::optional<int64_t> other = nearest_to_the_middle(sizes, low, high);
  if (!other && ends_were_seen) other = std::max(high, odd.value_or(high)) + 2;
  if (other) sizes.add(*other, "not recorded");
  return std::move(sizes).planned();
}

template <class T>
void halve(std::span<T> values) {
  for (T& value : values) value /= 2;
}

}  // namespace

std::vector<PlannedSize> plan_sizes(const std::vector<SymbolRange>& symbols) {
  std::vector<PlannedSize> all;
  for (const SymbolRange& range : symbols) {
    if (range.symbol.empty()) continue;
    const std::vector<PlannedSize> sizes = plan_one(range);
    all.insert(all.end(), sizes.begin(), sizes.end());
  }
  return all;
}

std::vector<Tensor> other_values(std::span<const Tensor> inputs) {
  std::vector<Tensor> others;
  for (const Tensor& input : inputs) {
    others.push_back(input.clone());
    Tensor& tensor = others.back();
    if (tensor.size() == 0) continue;
    auto* bytes = static_cast<std::byte*>(tensor.data());
    std::rotate(bytes, bytes + tensor.nbytes() / tensor.size(), bytes + tensor.nbytes());
    if (tensor.dtype() == DType::kFloat32) {
      halve(std::span(static_cast<float*>(tensor.data()), tensor.size()));
    } else if (tensor.dtype() == DType::kFloat64) {
      halve(std::span(static_cast<double*>(tensor.data()), tensor.size()));
    }
  }
  return others;
}

bool computes_wide_integers(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  const auto is_wide = [](const Tensor& t) {
    return t.size() > 0 && (t.dtype() == DType::kInt64 || t.dtype() == DType::kUInt64);
  };
  const auto is_exact = [](const Tensor& t) { return t.dtype() <= DType::kInt64; };
  return std::ranges::any_of(inputs, is_wide) && std::ranges::any_of(outputs, is_wide) &&
         std::ranges::all_of(outputs, is_exact);
}

std::vector<Tensor> beyond_32_bits(std::span<const Tensor> inputs) {
  constexpr int64_t kFar = 5'000'000'000;
  std::vector<Tensor> moved;
  for (const Tensor& input : inputs) {
    moved.push_back(input.clone());
    Tensor& tensor = moved.back();
    if (tensor.dtype() == DType::kInt64) {
      auto* values = static_cast<int64_t*>(tensor.data());
      for (size_t i = 0; i < tensor.size(); ++i) values[i] += values[i] < 0 ? -kFar : kFar;
    } else if (tensor.dtype() == DType::kUInt64) {
      auto* values = static_cast<uint64_t*>(tensor.data());
      for (size_t i = 0; i < tensor.size(); ++i) values[i] += static_cast<uint64_t>(kFar);
    }
  }
  return moved;
}

}  // namespace hasten
