// The documents by which clients learn what an API serves.
#pragma once

#include <optional>
#include <string_view>

#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"
#include "fakes/kube/store/kubernetes_release.h"

namespace wavetank::fakekube::http {

// /version, /api, /apis and below, /healthz; nullopt for any other path (`path` without a trailing slash).
std::optional<Response> Discover(const ResourceTable& table, const KubernetesRelease& release, std::string_view path);

}  // namespace wavetank::fakekube::http
