// What generators ask for the credentials of images (istiod: pilot/pkg/model/credentials).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavetank::pilot {

// The Docker credentials that WasmPlugins' images are pulled with.
class PullSecrets {
 public:
  virtual ~PullSecrets() = default;
  // False: no Secret can be had for proxies of that cluster.
  virtual bool Knows(const std::string& cluster) const = 0;
  // Of that cluster, else of the config cluster; nullopt: there is none. It must not be printed.
  virtual std::optional<std::string> DockerCredential(const std::string& cluster, std::string_view ns,
                                                      std::string_view name) const = 0;
};

}  // namespace wavetank::pilot
