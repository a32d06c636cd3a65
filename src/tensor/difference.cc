// SPDX-License-Identifier: Apache-2.0
#include "tensor/difference.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "tensor/ops.h"
#include "tensor/strided.h"

namespace hasten {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One pair of elements, judged.
struct Judged {
  double absolute, limit;
};

// The part of a tolerance's limit that grows with the expected value makes no sense
// for NaN and infinity: there only the same value will do.
double limit_at(double expected, const Tolerance& tolerance) {
  return std::isfinite(expected) ? tolerance.absolute + tolerance.relative * std::abs(expected)
                                 : tolerance.absolute;
}

double distance(double actual, double expected) {
  if (actual == expected) return 0;
  if (std::isfinite(actual) && std::isfinite(expected)) return std::abs(actual - expected);
  return std::isnan(actual) && std::isnan(expected) ? 0 : kInfinity;
}

// How the elements of each kind of storage are read and judged. Numbers that double
// holds exactly go through double.
template <class Storage, double (*kLoad)(Storage)>
struct RealElements {
  using Word = Storage;
  static Judged judge(Word a, Word e, const Tolerance& tolerance) {
    const double expected = kLoad(e);
    return {distance(kLoad(a), expected), limit_at(expected, tolerance)};
  }
  static double magnitude(Word w) { return kLoad(w); }
};

double load_half(uint16_t bits) { return half_to_float(bits); }
double load_bfloat16(uint16_t bits) { return bfloat16_to_float(bits); }
double load_float(float value) { return value; }
double load_double(double value) { return value; }

template <class Integer>
struct IntegerElements {
  using Word = Integer;
  static Judged judge(Word a, Word e, const Tolerance&) {
    // The difference of two 64-bit integers needs 65 bits; its modulus fits unsigned.
    const uint64_t gap = a > e ? static_cast<uint64_t>(a) - static_cast<uint64_t>(e)
                               : static_cast<uint64_t>(e) - static_cast<uint64_t>(a);
    return {static_cast<double>(gap), 0};
  }
  static double magnitude(Word w) { return static_cast<double>(w); }
};

struct BoolElements {
  using Word = uint8_t;  // Reading a bool whose byte is neither 0 nor 1 is undefined.
  static Judged judge(Word a, Word e, const Tolerance&) {
    return {(a != 0) == (e != 0) ? 0.0 : 1.0, 0};
  }
  static double magnitude(Word w) { return w != 0; }
};

template <class Real>
struct ComplexElements {
  using Word = std::complex<Real>;
  static Judged judge(Word a, Word e, const Tolerance& tolerance) {
    const bool nan_expected = std::isnan(e.real()) || std::isnan(e.imag());
    const bool nan_actual = std::isnan(a.real()) || std::isnan(a.imag());
    // Where the rest of a NaN goes depends on the order of operations.
    if (nan_expected || nan_actual) {
      return {nan_expected && nan_actual ? 0 : kInfinity, tolerance.absolute};
    }
    return {std::hypot(distance(a.real(), e.real()), distance(a.imag(), e.imag())),
            limit_at(magnitude(e), tolerance)};
  }
  static double magnitude(Word w) {
    return std::hypot(static_cast<double>(w.real()), static_cast<double>(w.imag()));
  }
};

// Only what the inner loop needs; the worst element is described afterwards.
struct Scan {
  double worst_excess = -kInfinity;
  double largest_absolute = 0;
  size_t worst = 0;  // Row-major number of the element.
  int64_t offset_a = 0, offset_e = 0;
  size_t outside = 0;
};

template <class Elements>
void compare_elements(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                      Scan& scan, Difference& difference) {
  using Word = typename Elements::Word;
  const auto* a = static_cast<const Word*>(actual.data());
  const auto* e = static_cast<const Word*>(expected.data());
  size_t first = 0;
  for_each_run<2>(actual.shape(), {actual.strides(), expected.strides()},
                  [&](const auto& offsets, int64_t count, const auto& steps) {
                    Scan s = scan;  // In registers during the loop.
                    for (int64_t i = 0; i < count; ++i) {
                      const int64_t at_a = offsets[0] + i * steps[0],
                                    at_e = offsets[1] + i * steps[1];
                      const Judged judged = Elements::judge(a[at_a], e[at_e], tolerance);
                      const double excess =
                          judged.absolute == kInfinity ? kInfinity : judged.absolute - judged.limit;
                      s.outside += excess > 0;
                      if (judged.absolute > s.largest_absolute)
                        s.largest_absolute = judged.absolute;
                      if (excess > s.worst_excess) {
                        s.worst_excess = excess;
                        s.worst = first + static_cast<size_t>(i);
                        s.offset_a = at_a;
                        s.offset_e = at_e;
                      }
                    }
                    scan = s;
                    first += static_cast<size_t>(count);
                  });
  const Word worst_a = a[scan.offset_a], worst_e = e[scan.offset_e];
  const Judged judged = Elements::judge(worst_a, worst_e, tolerance);
  difference.absolute = judged.absolute;
  difference.limit = judged.limit;
  difference.actual = Elements::magnitude(worst_a);
  difference.expected = Elements::magnitude(worst_e);
}

Shape unravel(size_t number, std::span<const int64_t> shape) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(number % static_cast<size_t>(shape[d]));
    number /= static_cast<size_t>(shape[d]);
  }
  return index;
}

using Compare = void (*)(const Tensor&, const Tensor&, const Tolerance&, Scan&, Difference&);

Compare comparer(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return compare_elements<BoolElements>;
    case DType::kUInt8:
      return compare_elements<IntegerElements<uint8_t>>;
    case DType::kInt8:
      return compare_elements<IntegerElements<int8_t>>;
    case DType::kUInt16:
      return compare_elements<IntegerElements<uint16_t>>;
    case DType::kInt16:
      return compare_elements<IntegerElements<int16_t>>;
    case DType::kUInt32:
      return compare_elements<IntegerElements<uint32_t>>;
    case DType::kInt32:
      return compare_elements<IntegerElements<int32_t>>;
    case DType::kUInt64:
      return compare_elements<IntegerElements<uint64_t>>;
    case DType::kInt64:
      return compare_elements<IntegerElements<int64_t>>;
    case DType::kFloat16:
      return compare_elements<RealElements<uint16_t, load_half>>;
    case DType::kBFloat16:
      return compare_elements<RealElements<uint16_t, load_bfloat16>>;
    case DType::kFloat32:
      return compare_elements<RealElements<float, load_float>>;
    case DType::kFloat64:
      return compare_elements<RealElements<double, load_double>>;
    case DType::kComplex64:
      return compare_elements<ComplexElements<float>>;
    case DType::kComplex128:
      return compare_elements<ComplexElements<double>>;
  }
  throw std::logic_error("compare: a dtype outside the enumeration");
}

bool same_shape(const Tensor& a, const Tensor& b) {
  const std::span<const int64_t> x = a.shape(), y = b.shape();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace

Difference compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  Difference difference;
  if (actual.dtype() != expected.dtype()) {
    difference.mismatch =
        format("dtype {}, not {}", to_string(actual.dtype()), to_string(expected.dtype()));
  } else if (!same_shape(actual, expected)) {
    difference.mismatch =
        format("shape {}, not {}", shape_text(actual.shape()), shape_text(expected.shape()));
  }
  if (!difference.mismatch.empty()) {
    difference.within = false;
    return difference;
  }
  if (actual.size() == 0) return difference;
  Scan scan;
  comparer(actual.dtype())(actual, expected, tolerance, scan, difference);
  difference.index = unravel(scan.worst, actual.shape());
  difference.largest_absolute = scan.largest_absolute;
  difference.outside = scan.outside;
  difference.within = scan.outside == 0;
  if (difference.absolute > 0) {
    difference.relative = difference.absolute == kInfinity
                              ? kInfinity
                              : difference.absolute / std::abs(difference.expected);
  }
  return difference;
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !same_shape(a, b)) return false;
  const auto* x = static_cast<const char*>(a.data());
  const auto* y = static_cast<const char*>(b.data());
  const auto width = static_cast<int64_t>(size_bytes(a.dtype()));
  bool same = true;
  for_each_run<2>(a.shape(), {a.strides(), b.strides()},
                  [&](const auto& offsets, int64_t count, const auto& steps) {
                    if (!same) return;
                    const char* p = x + offsets[0] * width;
                    const char* q = y + offsets[1] * width;
                    const bool joined = steps[0] == 1 && steps[1] == 1;
                    const int64_t pieces = joined ? 1 : count;
                    const auto piece = static_cast<size_t>(joined ? count * width : width);
                    for (int64_t i = 0; i < pieces && same; ++i) {
                      same = std::memcmp(p + i * steps[0] * width, q + i * steps[1] * width,
                                         piece) == 0;
                    }
                  });
  return same;
}

}  // namespace hasten
