// Which Kubernetes a cluster is of: what its API server says of itself, and what depends on it.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace wavetank::fakekube {

class KubernetesRelease {
 public:
  KubernetesRelease() : KubernetesRelease("1.27.16") {}
  // "1.33.5".
  explicit KubernetesRelease(std::string_view version) : git_version_("v" + std::string(version)) {
    const std::string_view rest = std::string_view(git_version_).substr(std::string_view("v1.").size());
    std::from_chars(rest.data(), rest.data() + rest.size(), minor_);
  }

  int minor() const { return minor_; }
  const std::string& git_version() const { return git_version_; }
  // kubernetes: pkg/apis/core/v1, Endpoints' lifecycle. It is served still.
  bool endpoints_deprecated() const { return minor_ >= 33; }

 private:
  std::string git_version_;
  int minor_ = 0;
};

}  // namespace wavetank::fakekube
