#include "core/settings/istiod_settings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/text/env_text.h"
#include "core/base/text/go_duration.h"
#include "core/base/text/parse_bool.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// What istio's own manifests set that pilot-discovery does not look up, or that says what is so anyway.
constexpr std::string_view kOfTheManifests[] = {"KUBECONFIG", "SERVICE_ACCOUNT", "ISTIOD_ADDR",
                                                "GOMEMLIMIT", "GOMAXPROCS",      "PLATFORM"};

// A flag of `pilot-discovery discovery`: its name without dashes. One that is true or false stands without a value.
struct Argument {
  std::string_view name, default_value;
  VariableEffect effect;
  VariableType type = VariableType::kText;
  // False: the value is none.
  bool (*apply)(const std::string& value, IstiodSettings* settings) = nullptr;
};

constexpr Argument kArguments[] = {
    {"clusterID", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.cluster_id = ClusterId(v);
       s->cluster_named = true;
       return true;
     }},
    {"domain", "cluster.local", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.domain_suffix = v;
       return true;
     }},
    {"keepaliveMaxServerConnectionAge", "", VariableEffect::kActs, VariableType::kDuration,
     [](const std::string& v, IstiodSettings* s) {
       s->connection_age = ParseGoDuration(v);
       return s->connection_age.has_value();
     }},
    {"namespace", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.system_namespace = v;
       return true;
     }},
    {"clusterRegistriesNamespace", "istio-system", VariableEffect::kNone},
    {"registries", "Kubernetes", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.registries = absl::StrSplit(v, ',');
       return true;
     }},
    {"kubeconfig", "", VariableEffect::kNone},
    {"meshConfig", "./etc/istio/config/mesh", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.mesh_config_file = v;
       return true;
     }},
    {"networksConfig", "./etc/istio/config/meshNetworks", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.networks_config_file = v;
       return true;
     }},
    // The process ends before it is over: only elections are waited for (istiod: Server.WaitUntilCompletion).
    {"shutdownDuration", "10s", VariableEffect::kImplied, VariableType::kDuration},
    {"configDir", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.config_dir = v;
       return true;
     }},
    {"clusterAliases", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       // pflag: stringToString, pairs parted by commas.
       for (const absl::string_view pair : absl::StrSplit(v, ',', absl::SkipEmpty())) {
         const size_t equals = pair.find('=');
         if (equals == absl::string_view::npos) return false;
         s->options.cluster_aliases[ClusterId(std::string(pair.substr(0, equals)))] =
             ClusterId(std::string(pair.substr(equals + 1)));
       }
       return true;
     }},
    {"httpAddr", ":8080", VariableEffect::kNone},
    {"httpsAddr", ":15017", VariableEffect::kNone},
    {"grpcAddr", ":15010", VariableEffect::kNone},
    {"secureGRPCAddr", ":15012", VariableEffect::kNone},
    {"monitoringAddr", ":15014", VariableEffect::kNone},
    {"profile", "true", VariableEffect::kImplied, VariableType::kFlag},
    {"caCertFile", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.ca_cert_file = v;
       return true;
     }},
    {"tlsCertFile", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.tls_cert_file = v;
       return true;
     }},
    {"tlsKeyFile", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->options.tls_key_file = v;
       return true;
     }},
    {"tls-cipher-suites", "", VariableEffect::kNone},
    {"kubernetesApiQPS", "80", VariableEffect::kNone, VariableType::kNumber},
    {"kubernetesApiBurst", "160", VariableEffect::kNone, VariableType::kInteger},
    {"keepaliveInterval", "30s", VariableEffect::kNone, VariableType::kDuration},
    {"keepaliveTimeout", "10s", VariableEffect::kNone, VariableType::kDuration},
    {"log_caller", "", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->log_caller = v;
       return true;
     }},
    {"log_output_level", "default:info", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->log_output_level = v;
       return true;
     }},
    {"log_stacktrace_level", "default:none", VariableEffect::kActs, VariableType::kText,
     [](const std::string& v, IstiodSettings* s) {
       s->log_stacktrace_level = v;
       return true;
     }},
    // Where and how istiod writes its log: there is no such process whose output one could read.
    {"log_as_json", "false", VariableEffect::kImplied, VariableType::kFlag},
    {"log_rotate", "", VariableEffect::kImplied},
    {"log_rotate_max_age", "30", VariableEffect::kImplied, VariableType::kInteger},
    {"log_rotate_max_backups", "1000", VariableEffect::kImplied, VariableType::kInteger},
    {"log_rotate_max_size", "104857600", VariableEffect::kImplied, VariableType::kInteger},
    {"log_target", "stdout", VariableEffect::kImplied},
    {"vklog", "", VariableEffect::kImplied},
    {"ctrlz_port", "9876", VariableEffect::kActs, VariableType::kInteger,
     [](const std::string& v, IstiodSettings* s) {
       int port = 0;
       if (!absl::SimpleAtoi(v, &port) || port < 0 || port > 65535) return false;
       s->ctrlz_port = static_cast<uint16_t>(port);
       return true;
     }},
    {"ctrlz_address", "localhost", VariableEffect::kImplied},
};

const Argument* FindArgument(std::string_view name) {
  if (name == "n") name = "namespace";
  const auto* const row =
      std::find_if(std::begin(kArguments), std::end(kArguments), [&](const auto& a) { return a.name == name; });
  return row == std::end(kArguments) ? nullptr : row;
}

const IstiodVariable* FindVariable(std::string_view name) {
  const auto all = IstiodVariables();
  const auto* const row = std::lower_bound(all.begin(), all.end(), name,
                                           [](const IstiodVariable& v, std::string_view n) { return v.name < n; });
  return row == all.end() || row->name != name ? nullptr : row;
}

// As the env package reads it; nullopt: what it expects instead goes to `expected`.
std::optional<VariableValue> Parse(VariableType type, const std::string& text, std::string_view* expected) {
  VariableValue out;
  out.text = text;
  switch (type) {
    case VariableType::kText:
      return out;
    case VariableType::kFlag: {
      *expected = env::kFlag;
      const std::optional<bool> flag = ParseBool(text);
      out.flag = flag.value_or(false);
      return flag ? std::optional(out) : std::nullopt;
    }
    case VariableType::kInteger:
      *expected = env::kInteger;
      return absl::SimpleAtoi(text, &out.integer) ? std::optional(out) : std::nullopt;
    case VariableType::kNumber:
      *expected = env::kNumber;
      return absl::SimpleAtod(text, &out.number) && out.number >= 0 && out.number < 1e9 ? std::optional(out)
                                                                                        : std::nullopt;
    case VariableType::kDuration: {
      *expected = env::kDuration;
      const std::optional<Duration> duration = ParseGoDuration(text);
      out.duration = duration.value_or(Duration{});
      return duration ? std::optional(out) : std::nullopt;
    }
  }
  return std::nullopt;
}

// Whether the text says what is so by default: "30m" and "30m0s" do.
bool SaysTheDefault(const IstiodVariable& variable, const std::string& text) {
  if (text == variable.default_value) return true;
  std::string_view ignored;
  const std::optional<VariableValue> said = Parse(variable.type, text, &ignored);
  const std::optional<VariableValue> usual = Parse(variable.type, std::string(variable.default_value), &ignored);
  if (variable.type == VariableType::kText || !said || !usual) return false;
  return said->flag == usual->flag && said->integer == usual->integer && said->number == usual->number &&
         said->duration == usual->duration;
}

// The kubelet: $(NAME) is the variable's value if it is known, $$(NAME) stands for itself.
std::string Expanded(const std::string& text, const std::map<std::string, std::string, std::less<>>& variables) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const size_t end = text[i + 1] == '(' ? text.find(')', i) : std::string::npos;
    const auto known = end == std::string::npos ? variables.end() : variables.find(text.substr(i + 2, end - i - 2));
    if (known == variables.end()) {
      out += '$';
      continue;
    }
    out += known->second;
    i = end;
  }
  return out;
}

// What a fieldRef names; nullopt: nothing that is known of a pod here.
std::optional<std::string> FieldOf(const json& pod, const std::string& path) {
  const json& meta = At(pod, "metadata");
  if (path == "metadata.name" || path == "metadata.namespace" || path == "metadata.uid")
    return Text(meta, path.substr(path.find('.') + 1));
  if (path == "spec.serviceAccountName" || path == "spec.nodeName")
    return Text(At(pod, "spec"), path.substr(path.find('.') + 1));
  if (path == "status.podIP" || path == "status.hostIP")
    return Text(At(pod, "status"), path.substr(path.find('.') + 1));
  for (const std::string_view map : {"labels", "annotations"}) {
    const std::string head = fmt::format("metadata.{}['", map);
    if (path.starts_with(head) && path.ends_with("']"))
      return Text(At(meta, map), path.substr(head.size(), path.size() - head.size() - 2));
  }
  return std::nullopt;
}

const json& ContainerNamed(const json& pod, std::string_view name) {
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    if (Text(container, "name") == name) return container;
  }
  return Null();
}

absl::Status Missing(std::string_view kind, const std::string& name, const std::string& key) {
  return absl::FailedPreconditionError(fmt::format("CreateContainerConfigError: couldn't find key {} in {} {}", key,
                                                   kind == "Secret" ? "Secret" : "ConfigMap", name));
}

absl::Status AddReference(const json& pod, const std::string& name, const json& from, const KeySource& keys,
                          ContainerSettings* out) {
  if (const json& field = At(from, "fieldRef"); field.is_object()) {
    if (auto value = FieldOf(pod, Text(field, "fieldPath"))) out->variables[name] = *std::move(value);
    return absl::OkStatus();
  }
  for (const auto& [kind, member] : {std::pair("ConfigMap", "configMapKeyRef"), std::pair("Secret", "secretKeyRef")}) {
    const json& ref = At(from, member);
    if (!ref.is_object() || keys == nullptr) continue;
    const std::string of = Text(ref, "name"), key = Text(ref, "key");
    const auto data = keys(kind, of);
    if (data && data->contains(key)) {
      out->variables[name] = data->at(key);
    } else if (At(ref, "optional") != true) {
      return Missing(kind, fmt::format("{}/{}", Text(At(pod, "metadata"), "namespace"), of), key);
    }
  }
  return absl::OkStatus();
}

// kubernetes: apimachinery/pkg/util/validation, IsEnvVarName(); other keys are left out, and an event says so.
bool IsVariableName(std::string_view name) {
  const auto goes = [](char c) { return absl::ascii_isalpha(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && goes(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return goes(c) || absl::ascii_isdigit(c); });
}

// kubernetes: pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables().
absl::Status AddAllOf(const json& from, const KeySource& keys, ContainerSettings* out) {
  for (const auto& [kind, member] : {std::pair("ConfigMap", "configMapRef"), std::pair("Secret", "secretRef")}) {
    const json& ref = At(from, member);
    if (!ref.is_object() || keys == nullptr) continue;
    const std::string of = Text(ref, "name");
    const auto data = keys(kind, of);
    if (!data && At(ref, "optional") != true) {
      return absl::FailedPreconditionError(
          fmt::format("CreateContainerConfigError: {} \"{}\" not found", *kind == 'S' ? "secret" : "configmap", of));
    }
    if (!data) continue;
    for (const auto& [key, value] : *data) {
      const std::string name = Text(from, "prefix") + key;
      if (IsVariableName(name)) out->variables[name] = value;
    }
  }
  return absl::OkStatus();
}

// A command line as pflag takes it apart.
struct CommandLine {
  std::vector<std::pair<std::string, std::optional<std::string>>> flags;  // the value is missing where none stands
  std::vector<std::string> words;                                         // what is no flag, and no flag's value
};

CommandLine TakeApart(const std::vector<std::string>& arguments) {
  CommandLine out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view text = arguments[i];
    if (!text.starts_with('-') || text == "-" || text == "--") {
      if (text != "--") out.words.emplace_back(text);
      continue;
    }
    text.remove_prefix(text.starts_with("--") ? 2 : 1);
    if (const size_t equals = text.find('='); equals != std::string_view::npos) {
      out.flags.emplace_back(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
      continue;
    }
    const Argument* const row = FindArgument(text);
    // An unknown flag takes what follows with it, unless that is a flag itself (pflag: stripUnknownFlagValue).
    const bool takes = row != nullptr ? row->type != VariableType::kFlag
                                      : i + 1 < arguments.size() && !arguments[i + 1].starts_with('-');
    std::optional<std::string> value;
    if (takes && i + 1 < arguments.size()) value = arguments[++i];
    out.flags.emplace_back(std::string(text), std::move(value));
  }
  return out;
}

// What pflag says of a value that is none of the flag's type.
std::string Complaint(const Argument& row, const std::string& value) {
  switch (row.type) {
    case VariableType::kText:
      return fmt::format("{} must be formatted as key=value", value);  // of a list of pairs, the one text that may fail
    case VariableType::kFlag:
      return fmt::format("strconv.ParseBool: parsing \"{}\": invalid syntax", value);
    case VariableType::kInteger:
      return fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", value);
    case VariableType::kNumber:
      return fmt::format("strconv.ParseFloat: parsing \"{}\": invalid syntax", value);
    case VariableType::kDuration:
      return GoDurationComplaint(value);
  }
  return {};
}

// istiod: pilot/cmd/pilot-discovery/app/cmd.go: cobra.ExactArgs(0) of command discovery; unknown flags are let pass.
absl::Status ApplyArguments(const std::vector<std::string>& arguments, IstiodSettings* settings) {
  const CommandLine line = TakeApart(arguments);
  std::vector<std::string> words = line.words;
  if (!words.empty() && words.front().ends_with("pilot-discovery")) words.erase(words.begin());
  if (words.empty() && !arguments.empty()) {
    return absl::InvalidArgumentError(
        "no command: pilot-discovery prints its help and ends; its first argument is discovery");
  }
  if (!words.empty() && words.front() != "discovery") {
    return absl::InvalidArgumentError(fmt::format("unknown command \"{}\" for \"pilot-discovery\"", words.front()));
  }
  std::string_view ignored;
  for (const auto& [name, value] : line.flags) {
    const Argument* const row = FindArgument(name);
    if (row == nullptr) continue;
    if (!value) {
      if (row->type == VariableType::kFlag) continue;
      return absl::InvalidArgumentError(fmt::format("flag needs an argument: --{}", name));
    }
    const bool readable = Parse(row->type, *value, &ignored).has_value();
    if (!readable || (row->apply != nullptr && !row->apply(*value, settings))) {
      return absl::InvalidArgumentError(
          fmt::format("invalid argument \"{}\" for \"--{}\" flag: {}", *value, name, Complaint(*row, *value)));
    }
  }
  if (words.size() > 1) {
    return absl::InvalidArgumentError(fmt::format("accepts 0 arg(s), received {}", words.size() - 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ContainerSettings> ReadContainerSettings(const json& pod, std::string_view container,
                                                        const KeySource& keys) {
  ContainerSettings out;
  const json& from = ContainerNamed(pod, container);
  for (const json& all : Items(At(from, "envFrom"))) {
    if (absl::Status status = AddAllOf(all, keys, &out); !status.ok()) return status;
  }
  for (const json& variable : Items(At(from, "env"))) {
    const std::string name = Text(variable, "name");
    if (At(variable, "value").is_string()) {
      out.variables[name] = Expanded(Text(variable, "value"), out.variables);
    } else if (At(variable, "valueFrom").is_object()) {
      if (absl::Status status = AddReference(pod, name, At(variable, "valueFrom"), keys, &out); !status.ok())
        return status;
    } else {
      out.variables[name] = "";
    }
  }
  for (const char* part : {"command", "args"}) {
    for (const json& argument : Items(At(from, part))) {
      out.arguments.push_back(Expanded(TextOf(argument), out.variables));
    }
  }
  return out;
}

absl::Status Apply(const ContainerSettings& said, IstiodSettings* settings) {
  for (const auto& [name, text] : said.variables) {
    const IstiodVariable* const row = FindVariable(name);
    if (row == nullptr || row->apply == nullptr || !row->KnownIn(settings->options.profile.istio)) continue;
    std::string_view expected;
    if (const std::optional<VariableValue> value = Parse(row->type, text, &expected)) {
      row->apply(*value, settings);
    } else {
      settings->log.push_back(env::Warning(text, expected, row->default_value));
    }
  }
  // Arguments have the last word: their defaults are what the environment said.
  return ApplyArguments(said.arguments, settings);
}

namespace {

enum class Unheeded : uint8_t { kUnknown, kOfAnotherRelease, kUnreadable, kWithoutEffect };

// `tell`(Unheeded, text) for each variable of istiod's container that changes nothing. `istio`: the release; empty: any
// of those known here.
template <typename Tell>
void EachUnheededVariable(const json& pod, std::string_view istio, const Tell& tell) {
  const json& container = ContainerNamed(pod, "discovery");
  for (const json& variable : Items(At(container, "env"))) {
    const std::string name = Text(variable, "name");
    if (std::find(std::begin(kOfTheManifests), std::end(kOfTheManifests), name) != std::end(kOfTheManifests)) continue;
    const IstiodVariable* const row = FindVariable(name);
    if (row == nullptr) {
      tell(Unheeded::kUnknown, istio.empty()
                                   ? fmt::format("variable {}, which no release of pilot-discovery knows", name)
                                   : fmt::format("variable {}, which pilot-discovery {} does not know", name, istio));
      continue;
    }
    if (!istio.empty() && !row->KnownIn(istio)) {
      tell(Unheeded::kOfAnotherRelease,
           fmt::format("variable {}, which pilot-discovery {} does not know", name, istio));
      continue;
    }
    const json& value = At(variable, "value");
    std::string_view expected;
    if (value.is_string() && !Parse(row->type, Text(variable, "value"), &expected)) {
      tell(Unheeded::kUnreadable,
           fmt::format("variable {}={}, where istiod expects {}", name, Text(variable, "value"), expected));
      continue;
    }
    if (row->effect != VariableEffect::kNone) continue;
    if (value.is_string() && SaysTheDefault(*row, Text(variable, "value"))) continue;
    tell(Unheeded::kWithoutEffect, value.is_string() ? fmt::format("variable {}={}", name, Text(variable, "value"))
                                                     : fmt::format("variable {}", name));
  }
}

}  // namespace

std::vector<std::string> VariablesIstiodIgnores(const json& pod, std::string_view istio) {
  std::vector<std::string> out;
  EachUnheededVariable(pod, istio, [&](Unheeded why, std::string text) {
    if (why != Unheeded::kWithoutEffect) out.push_back(std::move(text));
  });
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> VariablesOfOtherReleases(const json& pod, std::string_view istio) {
  std::vector<std::string> out;
  EachUnheededVariable(pod, istio, [&](Unheeded why, std::string text) {
    if (why == Unheeded::kOfAnotherRelease) out.push_back(std::move(text));
  });
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> UnheededSettings(const json& pod) {
  std::vector<std::string> out;
  EachUnheededVariable(pod, {}, [&](Unheeded why, std::string text) {
    out.push_back(text + (why == Unheeded::kUnreadable ? "," : ""));
  });
  const absl::StatusOr<ContainerSettings> said = ReadContainerSettings(pod, "discovery", nullptr);
  if (said.ok()) {
    for (const auto& [name, value] : TakeApart(said->arguments).flags) {
      const Argument* const row = FindArgument(name);
      if (row == nullptr) {
        out.push_back(fmt::format("argument --{}, which pilot-discovery 1.18.2 does not know", name));
      } else if (row->effect == VariableEffect::kNone && value.value_or("") != row->default_value) {
        out.push_back(fmt::format("argument --{}={}", name, value.value_or("")));
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace wavetank::pilot
