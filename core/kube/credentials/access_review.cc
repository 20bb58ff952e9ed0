#include "core/kube/credentials/access_review.h"

#include "fmt/format.h"

namespace wavetank::kube {

std::string ServiceAccountUser(std::string_view ns, std::string_view name) {
  return fmt::format("system:serviceaccount:{}:{}", ns, name);
}

}  // namespace wavetank::kube
