// /openapi/v2 and /openapi/v3: what kubectl asks before it applies, validates or explains.
#pragma once

#include <optional>
#include <string_view>

#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"
#include "fakes/kube/store/kubernetes_release.h"

namespace wavetank::fakekube::http {

// Protobuf for kubectl, JSON for clients that ask for it.
Response OpenApiV2(const ResourceTable& table, const KubernetesRelease& release, std::string_view accept);

// The index at /openapi/v3, and a document of each group's version below it ("/openapi/v3/apis/apps/v1"): paths with
// what may be asked of them, and the types that they reach. Only as JSON: 406 for clients that take none. Nothing if
// `path` is none of these.
std::optional<Response> OpenApiV3(const ResourceTable& table, const KubernetesRelease& release, std::string_view path,
                                  std::string_view accept);

}  // namespace wavetank::fakekube::http
