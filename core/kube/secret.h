// The data of a Secret.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::kube {

using SecretData = std::map<std::string, std::string, std::less<>>;

// `data` decoded, with `stringData` over it as the API server merges them. InvalidArgument names the entry that is no
// base64 or no string, and never shows a value.
absl::StatusOr<SecretData> ReadSecretData(const Object& secret);

// Whether somebody put this in the place of an entry before the Secret was given away: an API server has base64 alone,
// and nobody's key or kubeconfig is empty, all stars, or says that it was redacted.
bool IsCutOut(const nlohmann::json& entry);

// The entry `key` of `data`; "" without one.
std::string SecretEntry(const SecretData& data, std::string_view key);

// A Secret of type `type` ("Opaque", "kubernetes.io/tls", ...). Entries are kept as base64 in `data`.
ObjectRef MakeSecret(std::string_view ns, std::string_view name, const SecretData& data, const Labels& labels = {},
                     const Labels& annotations = {}, std::string_view type = "Opaque");

}  // namespace wavetank::kube
