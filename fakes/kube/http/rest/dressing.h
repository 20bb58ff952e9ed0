// What of an answer, and of what is written, follows from who asks and how, whatever it is about. Around
// RestApi::Execute(), which asks neither.
#pragma once

#include "fakes/kube/http/rest/call.h"
#include "fakes/kube/store/kubernetes_release.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// Warnings of what is deprecated, and line breaks for clients that ask for them.
void Dress(const Call& call, const KubernetesRelease& release, Response* response);

// Whether the request makes an object that says who made it: a CertificateSigningRequest.
bool SaysWhoAsks(const Call& call);
// `body` of such a request with who asks, instead of whom it names; of any other as it is.
nlohmann::json WithCaller(const Call& call, nlohmann::json body);

}  // namespace wavetank::fakekube::http
