// SPDX-License-Identifier: Apache-2.0
#include "backend/wire.h"

#include <doctest/doctest.h>

#include <cstring>

#include "backend/shared_memory.h"

namespace hasten {
namespace {

Json layout(const char* text) {
  auto json = Json::parse(text);
  REQUIRE(json);
  return *json;
}

TEST_CASE("Frame: a message survives the way, whatever pieces it arrives in") {
  const std::string frame = to_frame(Json::object({{"op", "run"}, {"slot", 3}}));
  for (size_t n = 0; n < frame.size(); ++n) {
    auto part = first_frame(std::string_view(frame).substr(0, n));
    REQUIRE(part);
    CHECK(!part->has_value());
  }
  auto whole = first_frame(frame + "tail");
  REQUIRE(whole);
  REQUIRE(whole->has_value());
  CHECK((*whole)->size == frame.size());
  CHECK((*whole)->message["slot"].as_int() == 3);
}

TEST_CASE("Frame: the length is four bytes, little-endian") {
  CHECK(to_frame(Json::object()) == std::string("\x02\0\0\0{}", 6));
}

TEST_CASE("Frame: what is too large, no JSON or no object is refused") {
  CHECK(!first_frame(std::string("\xff\xff\xff\x7f", 4)));
  CHECK(!first_frame(std::string("\x02\0\0\0{[", 6)));
  CHECK(!first_frame(std::string("\x02\0\0\0[]", 6)));
}

TEST_CASE("Error: it survives the way") {
  const Error error{Code::kOutOfMemory, "no room", "make some"};
  const Error back = error_from_json(to_json(error));
  CHECK(back.code == Code::kOutOfMemory);
  CHECK(back.message == "no room");
  CHECK(back.hint == "make some");
  CHECK(!error_from_json(Json("nonsense")).message.empty());
}

TEST_CASE("TensorLayout: a tensor inside the memory is accepted, strides may be absent") {
  auto t = TensorLayout::from_json(
      layout(R"({"dtype":"float32","shape":[2,3],"offset":64,"nbytes":24})"), 88);
  REQUIRE(t);
  CHECK(t->strides == Shape{3, 1});
  CHECK(t->is_compact());
}

TEST_CASE("TensorLayout: every lie about size and place is refused") {
  for (const char* lie :
       {R"({"dtype":"float32","shape":[2,3],"offset":65,"nbytes":24})",
        R"({"dtype":"float32","shape":[2,3],"offset":64,"nbytes":23})",
        R"({"dtype":"float32","shape":[2,3],"offset":-1,"nbytes":24})",
        R"({"dtype":"float32","shape":[2,-3],"offset":0,"nbytes":24})",
        R"({"dtype":"float32","shape":[2,3],"strides":[-3,1],"offset":0,"nbytes":24})",
        R"({"dtype":"float32","shape":[2,3],"strides":[1000,1],"offset":0,"nbytes":24})",
        R"({"dtype":"float32","shape":[2,3],"strides":[1],"offset":0,"nbytes":24})",
        R"({"dtype":"float32","shape":[4294967296,4294967296,4],"offset":0,"nbytes":0})",
        R"({"dtype":"float32","shape":[9223372036854775807],"strides":[0],"offset":0,"nbytes":4})",
        R"({"dtype":"float32","shape":[2],"offset":9223372036854775807,"nbytes":8})",
        R"({"dtype":"string","shape":[2],"offset":0,"nbytes":8})",
        R"({"dtype":"float32","shape":"2","offset":0,"nbytes":8})", R"({})"}) {
    CAPTURE(lie);
    CHECK(!TensorLayout::from_json(layout(lie), 88));
  }
}

TEST_CASE("TensorLayout: empty and scalar tensors take no more than they have") {
  CHECK(extent_bytes(DType::kFloat64, {}, {}) == 8);
  CHECK(extent_bytes(DType::kFloat64, Shape{0, 5}, Shape{5, 1}) == 0);
  CHECK(extent_bytes(DType::kInt8, Shape{4, 3}, Shape{0, 2}) == 5);  // Expanded rows, every second.
}

TEST_CASE("SharedMemory: tensors come back as they were put in, strided ones by value") {
  auto memory = SharedMemory::create();
  REQUIRE(memory);
  const std::vector<int32_t> values = {1, 2, 3, 4, 5, 6};
  std::vector<Tensor> tensors;
  tensors.push_back(Tensor::from(std::span<const int32_t>(values), Shape{2, 3}));
  tensors.push_back(Tensor::zeros(DType::kFloat32, Shape{0, 7}));
  // The transposed view of the same six numbers.
  tensors.push_back(Tensor::view_of(DType::kInt32, tensors[0].data(), {3, 2}, {1, 3}, nullptr));
  const Placement placement = place(tensors);
  for (const TensorLayout& l : placement.layouts) CHECK(l.offset % 64 == 0);
  REQUIRE(memory->write(tensors, placement));

  auto transposed = memory->read(placement.layouts[2]);
  REQUIRE(transposed);
  CHECK(std::vector<int32_t>(transposed->values<int32_t>().begin(),
                             transposed->values<int32_t>().end()) ==
        std::vector<int32_t>{1, 4, 2, 5, 3, 6});
  auto empty = memory->read(placement.layouts[1]);
  REQUIRE(empty);
  CHECK(empty->shape()[1] == 7);
}

TEST_CASE("SharedMemory: memory that shrank is an error, not a crash") {
  auto memory = SharedMemory::create();
  REQUIRE(memory);
  const std::vector<Tensor> none;
  TensorLayout layout{DType::kFloat32, {4}, {1}, 0, 16};
  REQUIRE(memory->resize(8));
  CHECK(!memory->read(layout));
}

TEST_CASE("SharedMemory: a stride of 0 cannot claim more elements than there are bytes") {
  auto memory = SharedMemory::create();
  REQUIRE(memory);
  REQUIRE(memory->resize(64));
  CHECK(!memory->read({DType::kFloat32, {int64_t{1} << 40}, {0}, 0, 4}));
}

}  // namespace
}  // namespace hasten
