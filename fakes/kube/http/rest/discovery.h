// The documents by which clients learn what an API serves.
#pragma once

#include <optional>
#include <string_view>

#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"

namespace wavetank::fakekube::http {

// The Kubernetes release that the fake stands for.
inline constexpr std::string_view kMajor = "1", kMinor = "27", kGitVersion = "v1.27.16";

// /version, /api, /apis and below, /healthz; nullopt for any other path (`path` without a trailing slash).
std::optional<Response> Discover(const ResourceTable& table, std::string_view path);

}  // namespace wavetank::fakekube::http
