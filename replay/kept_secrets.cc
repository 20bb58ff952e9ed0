#include "replay/kept_secrets.h"

#include "fmt/format.h"

namespace wavetank::replay {

bool KeepsSecrets(const LogHeader& header) {
  return header.world.is_object() && header.world.value(kKeepsSecretsKey, nlohmann::json()) == true;
}

std::string KeptSecretsNote(std::string_view path) {
  return fmt::format(
      "{}: holds private keys, tokens and passwords as they are (--keep-secrets): it is as secret as they are, and so "
      "is "
      "what is printed of it",
      path);
}

}  // namespace wavetank::replay
