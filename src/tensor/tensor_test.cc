// SPDX-License-Identifier: Apache-2.0
#include <hasten/tensor.h>

#include <complex>
#include <cstdint>
#include <doctest/doctest.h>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace hasten {
namespace {

std::vector<int64_t> listed(std::span<const int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

template <class T>
std::vector<T> listed_values(const Tensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  return {values.begin(), values.end()};
}

std::vector<float> counted(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

// A foreign producer that counts how often its deleter ran.
struct Foreign {
  DLManagedTensorVersioned managed{};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  float data[6] = {0, 1, 2, 3, 4, 5};
  int deleted = 0;

  Foreign() {
    managed.version = {DLPACK_MAJOR_VERSION, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* m) {
      ++static_cast<Foreign*>(m->manager_ctx)->deleted;
    };
    managed.dl_tensor = {.data = data,
                         .device = {kDLCPU, 0},
                         .ndim = 2,
                         .dtype = {kDLFloat, 32, 1},
                         .shape = shape,
                         .strides = strides,
                         .byte_offset = 0};
  }
};

TEST_CASE("DType: names, sizes and DLPack types go both ways") {
  const std::vector<std::pair<std::string, size_t>> known{
      {"bool", 1},     {"uint8", 1},   {"int8", 1},    {"uint16", 2},    {"int16", 2},
      {"uint32", 4},   {"int32", 4},   {"uint64", 8},  {"int64", 8},     {"float16", 2},
      {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16}};
  for (const auto& [name, bytes] : known) {
    CAPTURE(name);
    const std::optional<DType> dtype = dtype_from_string(name);
    REQUIRE(dtype);
    CHECK(to_string(*dtype) == name);
    CHECK(size_bytes(*dtype) == bytes);
    CHECK(dtype_from_dlpack(to_dlpack(*dtype)) == dtype);
  }
  CHECK_FALSE(dtype_from_string("float8"));
  CHECK_FALSE(dtype_from_dlpack({kDLFloat, 32, 4}));
  CHECK_FALSE(dtype_from_dlpack({kDLFloat8_e4m3fn, 8, 1}));
  CHECK(to_dlpack(DType::kBool).code == 6);
  CHECK(to_dlpack(DType::kBFloat16).code == 4);
}

TEST_CASE("DType: follows from the C++ type") {
  CHECK(dtype_of<bool>() == DType::kBool);
  CHECK(dtype_of<int8_t>() == DType::kInt8);
  CHECK(dtype_of<uint16_t>() == DType::kUInt16);
  CHECK(dtype_of<long>() == DType::kInt64);
  CHECK(dtype_of<long long>() == DType::kInt64);
  CHECK(dtype_of<unsigned long long>() == DType::kUInt64);
  CHECK(dtype_of<double>() == DType::kFloat64);
  CHECK(dtype_of<std::complex<float>>() == DType::kComplex64);
}

TEST_CASE("element_count: empty and huge shapes") {
  CHECK(element_count(Shape{}) == 1);
  CHECK(element_count(Shape{2, 3, 4}) == 24);
  CHECK(element_count(Shape{int64_t{1} << 62, 1024, 0}) == 0);
  CHECK(element_count(Shape{int64_t{1} << 62, 1024}) == SIZE_MAX);
  CHECK_THROWS_AS(element_count(Shape{2, -1}), std::logic_error);
}

TEST_CASE("Tensor: a new one is compact, aligned and says its strides") {
  const Tensor t = Tensor::zeros(DType::kInt32, Shape{2, 3, 4});
  CHECK(listed(t.shape()) == Shape{2, 3, 4});
  CHECK(listed(t.strides()) == Shape{12, 4, 1});
  CHECK(t.view().byte_offset == 0);
  CHECK(t.view().strides != nullptr);
  CHECK(reinterpret_cast<uintptr_t>(t.data()) % 64 == 0);
  CHECK(t.is_compact());
  CHECK(t.nbytes() == 96);
  CHECK(listed_values<int>(t) == std::vector<int>(24, 0));
}

TEST_CASE("Tensor: scalars and tensors without elements are tensors like any other") {
  const Tensor scalar = Tensor::from(std::span<const double>(std::vector{2.5}), Shape{});
  CHECK(scalar.shape().empty());
  CHECK(scalar.size() == 1);
  CHECK(listed_values<double>(scalar.clone()) == std::vector{2.5});
  const Tensor none = Tensor::empty(DType::kFloat32, Shape{0, 3});
  CHECK(none.size() == 0);
  CHECK(none.data() != nullptr);
  CHECK(listed(none.clone().shape()) == Shape{0, 3});
  CHECK(none.values<float>().empty());
  CHECK_FALSE(Tensor());
}

TEST_CASE("Tensor: beside an axis without entries the others may be of any size") {
  const Tensor t = Tensor::empty(DType::kInt8, Shape{int64_t{1} << 62, 1024, 0});
  CHECK(t.size() == 0);
  CHECK(t.clone().is_compact());
}

TEST_CASE("Tensor: a shape that no memory can hold is out of memory, not a wrapped size") {
  CHECK_THROWS_AS(Tensor::empty(DType::kFloat64, Shape{int64_t{1} << 61, 2}), std::bad_alloc);
  CHECK_THROWS_AS(Tensor::empty(DType::kFloat64, Shape{int64_t{1} << 62, 1024}), std::bad_alloc);
}

TEST_CASE("Tensor: values of another type or of a strided tensor are a bug") {
  std::vector<float> data = counted(6);
  const Tensor t = Tensor::from(std::span<const float>(data), Shape{2, 3});
  CHECK_THROWS_AS(t.values<double>(), std::logic_error);
  const Tensor turned = Tensor::view_of(DType::kFloat32, data.data(), {3, 2}, {1, 3}, nullptr);
  CHECK_FALSE(turned.is_compact());
  CHECK_THROWS_AS(turned.values<float>(), std::logic_error);
  CHECK_THROWS_AS(Tensor::from(std::span<const float>(data), Shape{7}), std::logic_error);
  CHECK_THROWS_AS(Tensor().data(), std::logic_error);
}

TEST_CASE("Tensor::copy_of: strides, offsets and broadcasts become a compact copy") {
  std::vector<float> data = counted(24);
  int64_t shape[] = {3, 2}, transposed[] = {1, 3}, broadcast[] = {0, 1}, wide[] = {8, 2};
  DLTensor view{.data = data.data(),
                .device = {kDLCPU, 0},
                .ndim = 2,
                .dtype = {kDLFloat, 32, 1},
                .shape = shape,
                .strides = transposed,
                .byte_offset = 0};
  CHECK(listed_values<float>(*Tensor::copy_of(view)) == std::vector<float>{0, 3, 1, 4, 2, 5});
  view.strides = broadcast;
  CHECK(listed_values<float>(*Tensor::copy_of(view)) == std::vector<float>{0, 1, 0, 1, 0, 1});
  view.strides = wide;
  view.byte_offset = 4;
  CHECK(listed_values<float>(*Tensor::copy_of(view)) == std::vector<float>{1, 3, 9, 11, 17, 19});
  view.strides = nullptr;
  CHECK(listed_values<float>(*Tensor::copy_of(view)) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("Tensor::copy_of: three strided axes keep row-major order") {
  std::vector<float> data = counted(24);
  // numpy.arange(24.).reshape(2, 3, 4).transpose(1, 2, 0).ravel()
  const Tensor t = Tensor::view_of(DType::kFloat32, data.data(), {3, 4, 2}, {4, 1, 12}, nullptr);
  CHECK(listed_values<float>(t.clone()) == std::vector<float>{0, 12, 1, 13, 2,  14, 3,  15,
                                                              4, 16, 5, 17, 6,  18, 7,  19,
                                                              8, 20, 9, 21, 10, 22, 11, 23});
}

TEST_CASE("Tensor::copy_of: what is not a host tensor is refused with a reason") {
  Foreign foreign;
  DLTensor& view = foreign.managed.dl_tensor;
  SUBCASE("device") { view.device.device_type = kDLCUDA; }
  SUBCASE("lanes") { view.dtype.lanes = 2; }
  SUBCASE("dtype") { view.dtype = {kDLOpaqueHandle, 64, 1}; }
  SUBCASE("negative size") { foreign.shape[0] = -1; }
  SUBCASE("no shape") { view.shape = nullptr; }
  SUBCASE("no data") { view.data = nullptr; }
  const Result<Tensor> copied = Tensor::copy_of(view);
  REQUIRE_FALSE(copied);
  CHECK_FALSE(copied.error().message.empty());
  REQUIRE_FALSE(Tensor::adopt(&foreign.managed));
  CHECK(foreign.deleted == 1);
}

TEST_CASE("Tensor::adopt: takes the memory over and calls the deleter once") {
  Foreign foreign;
  foreign.managed.dl_tensor.byte_offset = 4;
  foreign.shape[1] = 2;
  {
    Tensor t = *Tensor::adopt(&foreign.managed);
    CHECK(t.data() == foreign.data + 1);
    CHECK(listed(t.strides()) == Shape{3, 1});
    CHECK(listed_values<float>(t.clone()) == std::vector<float>{1, 2, 4, 5});
    const Tensor moved = std::move(t);
    CHECK(foreign.deleted == 0);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("Tensor::adopt: strides that an old producer left out are written") {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  {
    const Tensor t = *Tensor::adopt(&foreign.managed);
    CHECK(listed(t.strides()) == Shape{3, 1});
    CHECK(t.data() == foreign.data);
    CHECK(t.view().strides != nullptr);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("Tensor::adopt: of a foreign major only the deleter is used") {
  Foreign foreign;
  foreign.managed.version.major = DLPACK_MAJOR_VERSION + 1;
  foreign.managed.dl_tensor.shape = nullptr;
  const Result<Tensor> t = Tensor::adopt(&foreign.managed);
  REQUIRE_FALSE(t);
  CHECK(t.error().code == Code::kUnsupported);
  CHECK(foreign.deleted == 1);
  CHECK_FALSE(Tensor::adopt(nullptr));
}

TEST_CASE("Tensor::release: the object frees everything, the owner of a view included") {
  auto owner = std::make_shared<std::vector<float>>(counted(6));
  const std::weak_ptr<const void> watched = owner;
  Tensor t = Tensor::view_of(DType::kFloat32, owner->data(), {6}, {1}, owner);
  CHECK(t.data() == owner->data());
  owner.reset();
  DLManagedTensorVersioned* managed = t.release();
  CHECK_FALSE(t);
  CHECK_FALSE(watched.expired());
  CHECK(managed->version.major == DLPACK_MAJOR_VERSION);
  managed->deleter(managed);
  CHECK(watched.expired());

  Tensor own = Tensor::zeros(DType::kInt8, Shape{1000});
  const Tensor again = *Tensor::adopt(own.release());
  CHECK(again.size() == 1000);
}

TEST_CASE("Tensor::is_compact: strides of axes with one entry mean nothing") {
  std::vector<float> data = counted(6);
  CHECK(Tensor::view_of(DType::kFloat32, data.data(), {1, 6}, {99, 1}, nullptr).is_compact());
  CHECK(Tensor::view_of(DType::kFloat32, data.data(), {0, 6}, {1, 1}, nullptr).is_compact());
  CHECK_FALSE(Tensor::view_of(DType::kFloat32, data.data(), {3}, {2}, nullptr).is_compact());
}

}  // namespace
}  // namespace hasten
