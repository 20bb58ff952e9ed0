// What was wrong with a peer's certificate, in plain words. No Envoy says it so: answers do, beside Envoy's own words,
// which releases before 1.28 leave out. No text tells the time of the refusal, so that equal refusals are told alike.
#pragma once

#include <string>
#include <vector>

#include "core/x509/x509.h"
#include "fakes/envoy/tls/tls_config.h"

namespace wavetank::envoysim {

// Of a chain (leaf first, not empty) that `trusted` does not vouch for: "the certificate of spiffe://a expired at
// 2023-09-01T00:00:00Z". `now`: the refusing side's clock when `result` was found.
std::string ChainFinding(const std::vector<x509::CertificateRef>& chain, const x509::TrustBundle& trusted,
                         const x509::VerifyResult& result, Time now);

// Of a leaf none of whose names satisfies `expected` (SansMatch is false): "it is of spiffe://a, and spiffe://b is
// expected".
std::string NamesFinding(const x509::SubjectAltNames& names, const std::vector<SanMatch>& expected);

}  // namespace wavetank::envoysim
