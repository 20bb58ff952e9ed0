// The names of a case, and a DNS server that answers for them (IPv4 only).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace wavetank::envoydiff {

struct NameAnswer {
  enum class Kind { kAddresses, kUnknown, kFailure, kSilence };
  Kind kind = Kind::kAddresses;
  std::vector<std::string> addresses;  // none: the name is known, but nothing of it
  int ttl_seconds = 60;
  int delay_ms = 0;
};

// "*": all other names, instead of their being unknown.
using Names = std::map<std::string, NameAnswer>;

// The answer to a name.
NameAnswer AnswerOf(const Names& names, const std::string& name);

// How long a resolver waits for an answer; it asks once. Part of the real Envoy's configuration.
inline constexpr int kNamePatienceSeconds = 1;

class NameServer {
 public:
  virtual ~NameServer() = default;
  // From now on; names that are not given stay as they are.
  virtual void Change(const Names& names) = 0;

  // "IP:PORT", UDP. Null: it cannot listen there.
  static std::unique_ptr<NameServer> Make(const std::string& address, const Names& names);
};

}  // namespace wavetank::envoydiff
