// SPDX-License-Identifier: Apache-2.0
#include "python/tensors.h"

#include "base/text.h"
#include "python/raise.h"

namespace nb = nanobind;

namespace hasten {
namespace {

constexpr const char* kAttribute = "__dlpack_c_exchange_api__";

const DLPackExchangeAPI& look_up(nb::handle type) {
  if (!nb::hasattr(type, kAttribute)) {
    const std::string name = nb::cast<std::string>(type.attr("__name__"));
    throw nb::type_error(
        format("'{}' is no tensor that the DLPack exchange API is known of", name).c_str());
  }
  const nb::object capsule = type.attr(kAttribute);
  const auto* api = static_cast<const DLPackExchangeAPI*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!api) throw nb::python_error();
  if (api->header.version.major != DLPACK_MAJOR_VERSION) {
    raise({Code::kUnsupported, format("DLPack {}.x of this framework is not the {}.x of hasten",
                                      api->header.version.major, DLPACK_MAJOR_VERSION)});
  }
  return *api;
}

}  // namespace

const DLPackExchangeAPI& exchange_of(nb::handle object) {
  // One framework is the rule: its type is remembered. Under the GIL.
  static PyTypeObject* known_type = nullptr;
  static const DLPackExchangeAPI* known = nullptr;
  PyTypeObject* const type = Py_TYPE(object.ptr());
  if (type == known_type) return *known;
  const DLPackExchangeAPI& api = look_up(nb::handle(reinterpret_cast<PyObject*>(type)));
  if (!known_type) {
    Py_INCREF(type);
    known_type = type;
    known = &api;
  }
  return api;
}

DLTensor view_of(const DLPackExchangeAPI& api, nb::handle object) {
  DLTensor view{};
  if (api.dltensor_from_py_object_no_sync(object.ptr(), &view) != 0) throw nb::python_error();
  if (view.device.device_type != kDLCPU) throw nb::buffer_error("a tensor in host memory expected");
  return view;
}

Tensor from_python(nb::handle object) {
  DLManagedTensorVersioned* managed = nullptr;
  if (exchange_of(object).managed_tensor_from_py_object_no_sync(object.ptr(), &managed) != 0) {
    throw nb::python_error();
  }
  return value_or_raise(Tensor::adopt(managed));
}

std::vector<Tensor> from_python(const nb::list& objects) {
  std::vector<Tensor> tensors;
  tensors.reserve(objects.size());
  for (const nb::handle object : objects) tensors.push_back(from_python(object));
  return tensors;
}

nb::object to_python(const DLPackExchangeAPI& api, Tensor tensor) {
  void* object = nullptr;
  if (api.managed_tensor_to_py_object_no_sync(tensor.release(), &object) != 0) {
    throw nb::python_error();
  }
  return nb::steal<nb::object>(static_cast<PyObject*>(object));
}

nb::list to_python(const DLPackExchangeAPI& api, std::span<Tensor> tensors) {
  nb::list list;
  for (Tensor& tensor : tensors) list.append(to_python(api, std::move(tensor)));
  return list;
}

}  // namespace hasten
