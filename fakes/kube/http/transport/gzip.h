// Answers in gzip, as kube-apiserver compresses them (apiserver: pkg/endpoints/handlers/responsewriters/writers.go).
#pragma once

#include <string_view>

#include "fakes/kube/http/message/message.h"

namespace wavetank::fakekube::http {

// Whether a client that sent this Accept-Encoding reads gzip: the word stands by itself, without a weight.
bool AcceptsGzip(std::string_view accept_encoding);

// Compresses what is larger than 128 KiB, of produced answers piece by piece, and says so in the headers; a produced
// answer that is no larger has its body whole afterwards. To be called where `response.produce` may be.
void CompressIfLarge(Response* response);

}  // namespace wavetank::fakekube::http
