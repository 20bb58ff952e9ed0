// Files that istiod reads where it runs: mesh configuration, networks, injection, a certificate of its own
// (istiod: pilot/pkg/bootstrap/{mesh,sidecarinjector,certcontroller}.go, pkg/filewatcher).
//
// What is mounted into a pod changes when the kubelet brings it up to date, which is looked at once in a while; nothing
// is looked at that no file began with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent/files.h"
#include "core/base/host.h"

namespace wavetank::pilot {

inline constexpr std::string_view kInjectConfigFile = "./var/lib/istio/inject/config";
inline constexpr std::string_view kInjectValuesFile = "./var/lib/istio/inject/values";

class LocalFiles {
 public:
  // `files` may be null: there are none. Both outlive it.
  LocalFiles(Host& host, agent::Files* files, Duration period) : host_(host), files_(files), period_(period) {}

  // nullopt: it is not there, or `path` is empty.
  std::optional<std::string> Read(std::string_view path) const;
  // `changed` hears of each other content. A file that goes is as it was, as an open watch of it sees nothing.
  void Watch(const std::string& path, std::function<void(const std::string& text)> changed);

  using Folder = std::map<std::string, std::string>;  // texts of files, by path
  // All files below it, at any depth; empty: it is not there.
  Folder ReadFolder(std::string_view folder) const;
  // `changed` hears of each other content, files that came or went among it.
  void WatchFolder(const std::string& folder, std::function<void(const Folder& now)> changed);

 private:
  void LookLater();
  void Look();

  struct Watched {
    std::string last;
    std::function<void(const std::string& text)> changed;
  };
  struct WatchedFolder {
    std::string path;
    Folder last;
    std::function<void(const Folder& now)> changed;
  };
  Host& host_;
  agent::Files* const files_;
  const Duration period_;
  std::map<std::string, Watched> watched_;  // by path
  std::vector<WatchedFolder> folders_;
  bool looking_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
