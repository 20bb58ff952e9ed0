#include "sim/signing/istio_csr_flags.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "core/base/text/go_duration.h"
#include "core/base/text/parse_bool.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

enum class FlagType { kText, kTruth, kInteger, kNatural, kDuration, kList, kPairs };

struct FlagRow {
  std::string_view name;
  FlagType type = FlagType::kText;
  char letter = 0;
};

// Those of all releases; what some of them did not have is no mistake here.
constexpr FlagRow kFlags[] = {
    {"ca-trusted-node-accounts", FlagType::kList},
    {"certificate-namespace", FlagType::kText, 'c'},
    {"certificate-request-additional-annotations", FlagType::kPairs},
    {"cluster-id"},
    {"configmap-namespace-selector"},
    {"disable-kubernetes-client-rate-limiter", FlagType::kTruth},
    {"enable-client-cert-authenticator", FlagType::kTruth},
    {"issuer-enabled", FlagType::kTruth, 'e'},
    {"issuer-group", FlagType::kText, 'g'},
    {"issuer-kind", FlagType::kText, 'k'},
    {"issuer-name", FlagType::kText, 'u'},
    {"istiod-cert-additional-annotations", FlagType::kPairs},
    {"istiod-cert-additional-dns-names", FlagType::kList},
    {"istiod-cert-duration", FlagType::kDuration},
    {"istiod-cert-enabled", FlagType::kTruth},
    {"istiod-cert-istio-revisions", FlagType::kList},
    {"istiod-cert-key-algorithm"},
    {"istiod-cert-key-size", FlagType::kInteger},
    {"istiod-cert-name"},
    {"istiod-cert-namespace"},
    {"istiod-cert-renew-before", FlagType::kDuration},
    {"leader-election-namespace"},
    {"log-format"},
    {"log-level", FlagType::kNatural, 'v'},
    {"max-client-certificate-duration", FlagType::kDuration, 'm'},
    {"max-concurrent-reconciles", FlagType::kInteger},
    {"metrics-port", FlagType::kInteger},
    {"preserve-certificate-requests", FlagType::kTruth, 'd'},
    {"readiness-probe-path"},
    {"readiness-probe-port", FlagType::kInteger},
    {"root-ca-configmap-name"},
    {"root-ca-file"},
    {"runtime-issuance-config-map-name"},
    {"runtime-issuance-config-map-namespace"},
    {"serving-address", FlagType::kText, 'a'},
    {"serving-certificate-dns-names", FlagType::kList},
    {"serving-certificate-duration", FlagType::kDuration, 't'},
    {"serving-certificate-key-size", FlagType::kInteger},
    {"serving-signature-algorithm"},
    {"serving-tls-cipher-suites", FlagType::kList},
    {"serving-tls-curve-preferences", FlagType::kList},
    {"serving-tls-min-version"},
    {"trust-domain"},
    // Of every client of Kubernetes (k8s.io/cli-runtime: pkg/genericclioptions/config_flags.go).
    {"as"},
    {"as-group", FlagType::kList},
    {"as-uid"},
    {"as-user-extra", FlagType::kList},
    {"cache-dir"},
    {"certificate-authority"},
    {"client-certificate"},
    {"client-key"},
    {"cluster"},
    {"context"},
    {"disable-compression", FlagType::kTruth},
    {"help", FlagType::kTruth, 'h'},
    {"insecure-skip-tls-verify", FlagType::kTruth},
    {"kubeconfig"},
    {"namespace", FlagType::kText, 'n'},
    {"request-timeout"},
    {"server", FlagType::kText, 's'},
    {"tls-server-name"},
    {"token"},
    {"user"},
};

template <class Same>
const FlagRow* Find(Same same) {
  const auto* const row = std::find_if(std::begin(kFlags), std::end(kFlags), same);
  return row == std::end(kFlags) ? nullptr : row;
}

// strconv.ParseInt of base 0, as far as anybody writes it.
std::string NumberComplaint(std::string_view function, const std::string& value, bool natural) {
  const bool digits = !value.empty() &&
                      value.find_first_not_of("0123456789", natural ? 0 : value[0] == '-') == std::string::npos &&
                      value != "-";
  return fmt::format("strconv.{}: parsing \"{}\": {}", function, value,
                     digits ? "value out of range" : "invalid syntax");
}

// What pflag says of a value that is none of the type; empty: it is one.
std::string ComplaintAbout(FlagType type, const std::string& value) {
  int64_t integer = 0;
  uint32_t natural = 0;
  switch (type) {
    case FlagType::kText:
    case FlagType::kList:
      return {};
    case FlagType::kTruth:
      return ParseBool(value) ? "" : fmt::format("strconv.ParseBool: parsing \"{}\": invalid syntax", value);
    case FlagType::kInteger:
      return absl::SimpleAtoi(value, &integer) ? "" : NumberComplaint("ParseInt", value, false);
    case FlagType::kNatural:
      return absl::SimpleAtoi(value, &natural) ? "" : NumberComplaint("ParseUint", value, true);
    case FlagType::kDuration:
      return ParseGoDuration(value) ? "" : GoDurationComplaint(value);
    case FlagType::kPairs:
      for (const absl::string_view pair : absl::StrSplit(value, ',', absl::SkipEmpty())) {
        if (pair.find('=') == absl::string_view::npos)
          return fmt::format("{} must be formatted as key=value", std::string(pair));
      }
      return {};
  }
  return {};
}

}  // namespace

absl::StatusOr<IstioCsrFlags> IstioCsrFlags::Parse(const std::vector<std::string>& words) {
  IstioCsrFlags out;
  const auto take = [&out](const FlagRow& row, const std::string& value) {
    if (const std::string complaint = ComplaintAbout(row.type, value); !complaint.empty()) {
      const std::string name =
          row.letter == 0 ? fmt::format("--{}", row.name) : fmt::format("-{}, --{}", row.letter, row.name);
      return absl::InvalidArgumentError(
          fmt::format("invalid argument \"{}\" for \"{}\" flag: {}", value, name, complaint));
    }
    out.said_[std::string(row.name)].push_back(value);
    return absl::OkStatus();
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") break;
    if (word.size() < 2 || word[0] != '-') continue;  // no flag, and nobody asks for it
    if (word.starts_with("--")) {
      const size_t equals = word.find('=');
      const std::string name = word.substr(2, equals == word.npos ? word.npos : equals - 2);
      if (name.empty() || name[0] == '-') return absl::InvalidArgumentError(fmt::format("bad flag syntax: {}", word));
      const FlagRow* const row = Find([&](const FlagRow& each) { return each.name == name; });
      if (row == nullptr) return absl::InvalidArgumentError(fmt::format("unknown flag: --{}", name));
      std::string value = "true";
      if (equals != word.npos) {
        value = word.substr(equals + 1);
      } else if (row->type != FlagType::kTruth) {
        if (++i == words.size()) return absl::InvalidArgumentError(fmt::format("flag needs an argument: --{}", name));
        value = words[i];
      }
      if (absl::Status taken = take(*row, value); !taken.ok()) return taken;
      continue;
    }
    for (size_t k = 1; k < word.size(); ++k) {
      const char letter = word[k];
      const FlagRow* const row = Find([&](const FlagRow& each) { return each.letter == letter; });
      if (row == nullptr)
        return absl::InvalidArgumentError(fmt::format("unknown shorthand flag: '{}' in -{}", letter, word.substr(1)));
      std::string value = "true";
      const bool equals = k + 1 < word.size() && word[k + 1] == '=';
      const bool ends = equals || row->type != FlagType::kTruth;
      if (equals) {
        value = word.substr(k + 2);
      } else if (ends && k + 1 < word.size()) {
        value = word.substr(k + 1);
      } else if (ends) {
        if (++i == words.size())
          return absl::InvalidArgumentError(fmt::format("flag needs an argument: '{}' in -{}", letter, word.substr(1)));
        value = words[i];
      }
      if (absl::Status taken = take(*row, value); !taken.ok()) return taken;
      if (ends) break;
    }
  }
  return out;
}

std::string IstioCsrFlags::Text(std::string_view name, std::string_view usual) const {
  const auto it = said_.find(name);
  return it == said_.end() ? std::string(usual) : it->second.back();
}

bool IstioCsrFlags::Truth(std::string_view name, bool usual) const { return ParseBool(Text(name, "")).value_or(usual); }

int64_t IstioCsrFlags::Integer(std::string_view name, int64_t usual) const {
  int64_t out = 0;
  return absl::SimpleAtoi(Text(name, ""), &out) ? out : usual;
}

Duration IstioCsrFlags::Span(std::string_view name, Duration usual) const {
  return ParseGoDuration(Text(name, "")).value_or(usual);
}

std::vector<std::string> IstioCsrFlags::List(std::string_view name, std::vector<std::string> usual) const {
  const auto it = said_.find(name);
  if (it == said_.end()) return usual;
  std::vector<std::string> out;
  for (const std::string& value : it->second) {
    const std::vector<std::string> more = absl::StrSplit(value, ',', absl::SkipEmpty());
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace wavetank::sim
