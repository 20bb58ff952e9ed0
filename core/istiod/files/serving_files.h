// istiod's own certificate out of files: of its arguments, or at the place where a Secret `istiod-tls` is mounted
// (istiod: pilot/pkg/bootstrap/server.go, hasCustomTLSCerts; certcontroller.go, initCertificateWatches).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/istiod/files/local_files.h"
#include "core/security/istiod_ca.h"

namespace wavetank::pilot {

struct ServingPaths {
  std::string certificate, key, roots;
};

class ServingFiles {
 public:
  // nullopt: neither the arguments name all three, nor are they at the well-known place.
  static std::optional<ServingPaths> Find(const LocalFiles& files, const ServingPaths& arguments);

  explicit ServingFiles(ServingPaths paths) : paths_(std::move(paths)) {}
  // Reads them, and again when certificate or key change; the roots alone are not watched. What cannot be read leaves
  // what was there.
  absl::Status Start(LocalFiles& files, std::function<void(absl::Status)> changed);

  const security::ServingCertificate& certificate() const { return certificate_; }
  const std::string& roots_pem() const { return roots_; }

 private:
  absl::Status Load(const LocalFiles& files);

  const ServingPaths paths_;
  security::ServingCertificate certificate_;
  std::string roots_;
};

}  // namespace wavetank::pilot
