// SPDX-License-Identifier: Apache-2.0
#include <hasten/tensor.h>

#include <array>
#include <complex>
#include <type_traits>

namespace hasten {
namespace {

struct Traits {
  DType dtype;
  std::string_view name;
  uint8_t code, bits;  // As DLPack has them.
};

constexpr std::array<Traits, 15> kTraits{{
    {DType::kBool, "bool", kDLBool, 8},
    {DType::kUInt8, "uint8", kDLUInt, 8},
    {DType::kInt8, "int8", kDLInt, 8},
    {DType::kUInt16, "uint16", kDLUInt, 16},
    {DType::kInt16, "int16", kDLInt, 16},
    {DType::kUInt32, "uint32", kDLUInt, 32},
    {DType::kInt32, "int32", kDLInt, 32},
    {DType::kUInt64, "uint64", kDLUInt, 64},
    {DType::kInt64, "int64", kDLInt, 64},
    {DType::kFloat16, "float16", kDLFloat, 16},
    {DType::kBFloat16, "bfloat16", kDLBfloat, 16},
    {DType::kFloat32, "float32", kDLFloat, 32},
    {DType::kFloat64, "float64", kDLFloat, 64},
    {DType::kComplex64, "complex64", kDLComplex, 64},
    {DType::kComplex128, "complex128", kDLComplex, 128},
}};

constexpr bool in_order_of_the_enum() {
  for (size_t i = 0; i < kTraits.size(); ++i) {
    if (static_cast<size_t>(kTraits[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order_of_the_enum());

const Traits& traits(DType dtype) { return kTraits.at(static_cast<size_t>(dtype)); }

template <class T>
constexpr DType integer_dtype() {
  constexpr bool is_signed = T(-1) < T(0);
  switch (sizeof(T)) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    default:
      return is_signed ? DType::kInt64 : DType::kUInt64;
  }
}

}  // namespace

std::string_view to_string(DType dtype) { return traits(dtype).name; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const Traits& t : kTraits) {
    if (t.name == name) return t.dtype;
  }
  return std::nullopt;
}

size_t size_bytes(DType dtype) { return traits(dtype).bits / 8; }

DLDataType to_dlpack(DType dtype) {
  return {.code = traits(dtype).code, .bits = traits(dtype).bits, .lanes = 1};
}

std::optional<DType> dtype_from_dlpack(DLDataType type) {
  for (const Traits& t : kTraits) {
    if (t.code == type.code && t.bits == type.bits && type.lanes == 1) return t.dtype;
  }
  return std::nullopt;
}

template <class T>
DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kFloat64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::kComplex64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::kComplex128;
  else
    return integer_dtype<T>();
}

template HASTEN_API DType dtype_of<bool>();
template HASTEN_API DType dtype_of<signed char>();
template HASTEN_API DType dtype_of<unsigned char>();
template HASTEN_API DType dtype_of<short>();
template HASTEN_API DType dtype_of<unsigned short>();
template HASTEN_API DType dtype_of<int>();
template HASTEN_API DType dtype_of<unsigned int>();
template HASTEN_API DType dtype_of<long>();
template HASTEN_API DType dtype_of<unsigned long>();
template HASTEN_API DType dtype_of<long long>();
template HASTEN_API DType dtype_of<unsigned long long>();
template HASTEN_API DType dtype_of<float>();
template HASTEN_API DType dtype_of<double>();
template HASTEN_API DType dtype_of<std::complex<float>>();
template HASTEN_API DType dtype_of<std::complex<double>>();

}  // namespace hasten
