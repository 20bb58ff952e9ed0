// Formats of texts in a definition's schema (kube-openapi: pkg/validation/strfmt).
#pragma once

#include <string>
#include <string_view>

namespace wavetank::fakekube::http {

// Whether `text` is of that format. A format that kube-apiserver does not know holds for every text.
bool HasFormat(std::string_view format, const std::string& text);

}  // namespace wavetank::fakekube::http
