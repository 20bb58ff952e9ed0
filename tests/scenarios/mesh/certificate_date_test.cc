#include "scenarios/mesh/certificate_date.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "core/x509/x509.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

json SecretWith(const x509::CertificateAuthority& ca) {
  return {{"kind", "Secret"}, {"data", {{"ca-cert.pem", absl::Base64Escape(ca.certificate->ToPem())}}}};
}

TEST(Validity, ASecondAfterTheLastCertificateBegins) {
  Validity validity;
  validity.Add(SecretWith(x509::MakeRootCa(1, "a", Time{} + 100h, 1000h)));
  validity.Add(SecretWith(x509::MakeRootCa(1, "b", Time{} + 200h, 1000h)));
  EXPECT_EQ(validity.DateBeside(Time{}), Time{} + 200h + 1s);
}

TEST(Validity, NothingIsToBeDoneWhereAllHold) {
  Validity validity;
  EXPECT_EQ(validity.DateBeside(Time{}), std::nullopt);
  validity.Add(SecretWith(x509::MakeRootCa(1, "a", Time{} - 1h, 1000h)));
  EXPECT_EQ(validity.DateBeside(Time{}), std::nullopt);
}

TEST(Validity, WhatCannotBeReadIsPassedOver) {
  Validity validity;
  validity.Add({{"kind", "Secret"}, {"data", {{"x", "-----BEGIN CERTIFICATE-----"}, {"y", 7}}}});
  validity.Add({{"kind", "Secret"}, {"stringData", {{"x", "-----BEGIN CERTIFICATE-----\nno\n"}}}});
  EXPECT_EQ(validity.DateBeside(Time{}), std::nullopt);
}

}  // namespace
}  // namespace wavetank::scenario
