// PEM blocks to DER.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::envoysim {

// The contents of all "-----BEGIN CERTIFICATE-----" blocks, in order; blocks that do not decode are left out.
std::vector<std::string> CertificatesFromPem(std::string_view pem);

}  // namespace wavetank::envoysim
