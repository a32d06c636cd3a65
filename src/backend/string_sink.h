// SPDX-License-Identifier: Apache-2.0
// Where a plugin's text goes.
#pragma once

#include <hasten/plugin.h>

#include <string>

namespace hasten {

struct StringSink : hasten_sink {
  std::string text;
  StringSink() {
    write = [](hasten_sink* self, const char* data, size_t size) {
      static_cast<StringSink*>(self)->text.append(data, size);
    };
  }
};

}  // namespace hasten
