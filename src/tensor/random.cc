// SPDX-License-Identifier: Apache-2.0
// random_tensor. The standard library's distributions differ between libraries, so they
// are written out here; only the engine's sequence is fixed by the standard.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "tensor/ops.h"

namespace hasten {
namespace {

double uniform(std::mt19937_64& engine) {  // [0, 1), 53 bits.
  return static_cast<double>(engine() >> 11) * 0x1p-53;
}

// ln(x) from operations that IEEE 754 rounds alike everywhere, which libm's log is not:
// x = m * 2^e with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)).
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);  // |s| < 0.172: the 12th term is below 1e-17.
  double sum = 0;
  for (int k = 12; k >= 0; --k) sum = sum * s * s + 1.0 / (2 * k + 1);
  return 2 * s * sum + exponent * std::numbers::ln2;
}

// Marsaglia's polar method, both of its numbers used.
class Normal {
 public:
  double operator()(std::mt19937_64& engine) {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double x = 0, y = 0, r = 0;
    do {
      x = 2 * uniform(engine) - 1;
      y = 2 * uniform(engine) - 1;
      r = x * x + y * y;
    } while (r >= 1 || r == 0);
    const double factor = std::sqrt(-2 * portable_log(r) / r);
    spare_ = y * factor;
    has_spare_ = true;
    return x * factor;
  }

 private:
  double spare_ = 0;
  bool has_spare_ = false;
};

template <class T, class Convert>
void fill_floats(Tensor& tensor, size_t count, std::mt19937_64& engine,
                 const std::optional<FillRange>& range, Convert convert) {
  auto* out = static_cast<T*>(tensor.data());
  Normal normal;
  for (size_t i = 0; i < count; ++i) {
    const double value =
        range ? range->low + (range->high - range->low) * uniform(engine) : normal(engine);
    out[i] = convert(value);
  }
}

// The whole number in T's range nearest to `value`.
template <class T>
T clamped(double value) {
  if (!(value > static_cast<double>(std::numeric_limits<T>::min()))) {
    return std::numeric_limits<T>::min();
  }
  // The largest 64-bit integers are no doubles: compare with what rounds up to 2^n.
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

template <class T>
void fill_integers(Tensor& tensor, std::mt19937_64& engine, const FillRange& range) {
  const T low = clamped<T>(std::ceil(range.low)), high = clamped<T>(std::floor(range.high));
  if (high < low) throw std::logic_error("random_tensor: no integer in the range");
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  auto* out = static_cast<T*>(tensor.data());
  for (size_t i = 0; i < tensor.size(); ++i) {
    // Span 0: all of 64 bits. The bias of the remainder is below span / 2^64.
    const uint64_t drawn = span == 0 ? engine() : engine() % span;
    out[i] = static_cast<T>(static_cast<uint64_t>(low) + drawn);
  }
}

}  // namespace

Tensor random_tensor(DType dtype, std::span<const int64_t> shape, uint64_t seed,
                     std::optional<FillRange> range) {
  Tensor tensor = Tensor::empty(dtype, shape);
  std::mt19937_64 engine(seed);
  const size_t n = tensor.size();
  const FillRange whole = range.value_or(FillRange{0, 1});
  const auto to_float = [](double v) { return static_cast<float>(v); };
  const auto same = [](double v) { return v; };
  switch (dtype) {
    case DType::kBool:
      fill_integers<uint8_t>(tensor, engine,
                             {std::clamp(whole.low, 0.0, 1.0), std::clamp(whole.high, 0.0, 1.0)});
      break;
    case DType::kUInt8:
      fill_integers<uint8_t>(tensor, engine, whole);
      break;
    case DType::kInt8:
      fill_integers<int8_t>(tensor, engine, whole);
      break;
    case DType::kUInt16:
      fill_integers<uint16_t>(tensor, engine, whole);
      break;
    case DType::kInt16:
      fill_integers<int16_t>(tensor, engine, whole);
      break;
    case DType::kUInt32:
      fill_integers<uint32_t>(tensor, engine, whole);
      break;
    case DType::kInt32:
      fill_integers<int32_t>(tensor, engine, whole);
      break;
    case DType::kUInt64:
      fill_integers<uint64_t>(tensor, engine, whole);
      break;
    case DType::kInt64:
      fill_integers<int64_t>(tensor, engine, whole);
      break;
    case DType::kFloat16:
      fill_floats<uint16_t>(tensor, n, engine, range,
                            [&](double v) { return float_to_half(to_float(v)); });
      break;
    case DType::kBFloat16:
      fill_floats<uint16_t>(tensor, n, engine, range,
                            [&](double v) { return float_to_bfloat16(to_float(v)); });
      break;
    case DType::kFloat32:
      fill_floats<float>(tensor, n, engine, range, to_float);
      break;
    case DType::kFloat64:
      fill_floats<double>(tensor, n, engine, range, same);
      break;
    case DType::kComplex64:
      fill_floats<float>(tensor, 2 * n, engine, range, to_float);
      break;
    case DType::kComplex128:
      fill_floats<double>(tensor, 2 * n, engine, range, same);
      break;
  }
  return tensor;
}

}  // namespace hasten
