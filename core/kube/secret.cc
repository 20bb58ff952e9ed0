#include "core/kube/secret.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "fmt/format.h"

namespace wavetank::kube {

absl::StatusOr<SecretData> ReadSecretData(const Object& secret) {
  SecretData out;
  for (const char* field : {"data", "stringData"}) {
    const auto section = secret.body.find(field);
    if (section == secret.body.end() || section->is_null()) continue;
    if (!section->is_object()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: .{} must be a mapping of names to values", secret.Key(), field));
    }
    for (const auto& [key, value] : section->items()) {
      if (value.is_null()) {
        out[key].clear();
        continue;
      }
      const auto* text = value.get_ptr<const std::string*>();
      if (text == nullptr) {
        return absl::InvalidArgumentError(fmt::format("{}: .{}.{} must be a string", secret.Key(), field, key));
      }
      if (field[0] == 's') {
        out[key] = *text;
      } else if (!absl::Base64Unescape(*text, &out[key])) {
        return absl::InvalidArgumentError(
            fmt::format("{}: .data.{} is not base64; encode it, or put it under stringData", secret.Key(), key));
      }
    }
  }
  return out;
}

bool IsCutOut(const nlohmann::json& entry) {
  std::string plain;
  if (!entry.is_string() || !absl::Base64Unescape(entry.get<std::string>(), &plain)) return true;
  plain = absl::AsciiStrToLower(plain);
  return plain.find_first_not_of("*x \n") == plain.npos || plain.find("redacted") != plain.npos;
}

std::string SecretEntry(const SecretData& data, std::string_view key) {
  const auto it = data.find(key);
  return it == data.end() ? std::string() : it->second;
}

ObjectRef MakeSecret(std::string_view ns, std::string_view name, const SecretData& data, const Labels& labels,
                     const Labels& annotations, std::string_view type) {
  nlohmann::json body = {
      {"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}, {"namespace", ns}}}, {"type", type}};
  if (!labels.empty()) body["metadata"]["labels"] = labels;
  if (!annotations.empty()) body["metadata"]["annotations"] = annotations;
  for (const auto& [key, value] : data) body["data"][key] = absl::Base64Escape(value);
  auto object = Object::FromJson(std::move(body));
  return object.ok() ? *std::move(object) : nullptr;
}

}  // namespace wavetank::kube
