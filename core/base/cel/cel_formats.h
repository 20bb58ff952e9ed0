// Named formats of texts: format.dns1123Label().validate(x), format.named('uuid').
// Kubernetes: staging/src/k8s.io/apiserver/pkg/cel/library/format.go
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cel/cel_value.h"

namespace wavetank::cel {

// In the order of CelFunction's.
enum class CelFormatKind : uint8_t {
  kDns1123Label,
  kDns1123Subdomain,
  kDns1035Label,
  kQualifiedName,
  kDns1123LabelPrefix,
  kDns1123SubdomainPrefix,
  kDns1035LabelPrefix,
  kLabelValue,
  kUri,
  kUuid,
  kByte,
  kDate,
  kDateTime,
};

CelValue MakeFormat(CelFormatKind kind);
// Of a name; nothing: it is none's.
std::optional<CelFormatKind> FindFormat(std::string_view name);
// What is wrong with the text, in Kubernetes' words; nothing: `object` is no format.
std::optional<std::vector<std::string>> WrongWith(std::string_view text, const CelMap& object);

}  // namespace wavetank::cel
