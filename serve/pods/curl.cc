#include "serve/pods/curl.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

absl::Status Unknown(const std::string& option) {
  return absl::InvalidArgumentError(
      fmt::format("curl: option {}: is not known to the curl of simulated pods\n", option));
}

absl::Status ReadUrl(std::string url, CurlCall& call) {
  if (const size_t scheme = url.find("://"); scheme != std::string::npos) {
    const std::string name = absl::AsciiStrToLower(url.substr(0, scheme));
    if (name != "http") {
      return absl::InvalidArgumentError(
          fmt::format("curl: (1) Protocol \"{}\" not supported by the curl of simulated pods\n", name));
    }
    url.erase(0, scheme + 3);
  }
  url = url.substr(0, url.find('#'));
  const size_t path = url.find_first_of("/?");
  if (path != std::string::npos) {
    call.path = (url[path] == '?' ? "/" : "") + url.substr(path);
    url.erase(path);
  }
  const size_t colon = url.rfind(':');
  if (colon != std::string::npos && url.find(']', colon) == std::string::npos) {
    if (!absl::SimpleAtoi(url.substr(colon + 1), &call.port) || call.port < 1 || call.port > 65535) {
      return absl::InvalidArgumentError("curl: (3) URL using bad/illegal format or missing URL\n");
    }
    url.erase(colon);
  }
  if (url.empty()) return absl::InvalidArgumentError("curl: (3) URL using bad/illegal format or missing URL\n");
  call.host = url;
  return absl::OkStatus();
}

absl::Status ReadHeader(const std::string& text, CurlCall& call) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) return absl::OkStatus();  // curl sends none either
  std::string value = text.substr(colon + 1);
  absl::StripAsciiWhitespace(&value);
  call.headers[absl::AsciiStrToLower(text.substr(0, colon))] = value;
  return absl::OkStatus();
}

// Options that change nothing here; true: a value follows.
const std::map<std::string, bool>& WithoutEffect() {
  static const auto* const kOptions = new std::map<std::string, bool>{
      {"--connect-timeout", true},    {"-v", false},    {"--verbose", false},  {"-k", false},
      {"--insecure", false},          {"-L", false},    {"--location", false}, {"--http1.1", false},
      {"--no-progress-meter", false}, {"-4", false},    {"--ipv4", false},     {"-A", true},
      {"--user-agent", true},         {"--retry", true}};
  return *kOptions;
}

constexpr double kMostSeconds = 1e6;

}  // namespace

absl::StatusOr<CurlCall> ReadCurl(const std::vector<std::string>& argv) {
  CurlCall call;
  std::string url;
  // "-sS" is "-s -S"; "-ofile" is "-o file".
  std::vector<std::string> words;
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word.size() < 3 || word[0] != '-' || word[1] == '-') {
      words.push_back(word);
      continue;
    }
    for (size_t k = 1; k < word.size(); ++k) {
      words.push_back(std::string("-") + word[k]);
      if (std::string_view("HXowmdA").find(word[k]) != std::string_view::npos && k + 1 < word.size()) {
        words.push_back(word.substr(k + 1));
        break;
      }
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> std::string { return i + 1 < words.size() ? words[++i] : std::string(); };
    if (word.empty() || word[0] != '-') {
      url = word;
    } else if (word == "-s" || word == "--silent") {
      call.silent = true;
    } else if (word == "-S" || word == "--show-error") {
      call.show_errors = true;
    } else if (word == "-i" || word == "--include") {
      call.include_head = true;
    } else if (word == "-I" || word == "--head") {
      call.only_head = true;
      call.method = "HEAD";
    } else if (word == "-f" || word == "--fail") {
      call.fail = true;
    } else if (word == "-o" || word == "--output") {
      call.to_nowhere = true;
      value();
    } else if (word == "-w" || word == "--write-out") {
      call.write_out = value();
    } else if (word == "-X" || word == "--request") {
      call.method = value();
    } else if (word == "-d" || word == "--data") {
      value();
      if (call.method == "GET") call.method = "POST";
    } else if (word == "-H" || word == "--header") {
      if (absl::Status status = ReadHeader(value(), call); !status.ok()) return status;
    } else if (word == "--url") {
      url = value();
    } else if (word == "-0" || word == "--http1.0") {
      call.protocol = "http1.0";
    } else if (word == "--http2-prior-knowledge") {
      call.protocol = "http2";
    } else if (word == "-m" || word == "--max-time") {
      const std::string text = value();
      double seconds = 0;
      if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0) || seconds > kMostSeconds) {
        return absl::InvalidArgumentError(
            fmt::format("curl: option {}: expected a proper numerical parameter\n", word));
      }
      call.max_time = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    } else if (const auto it = WithoutEffect().find(word); it != WithoutEffect().end()) {
      if (it->second) value();
    } else {
      return Unknown(word);
    }
  }
  if (url.empty()) {
    return absl::InvalidArgumentError("curl: try 'curl --help' or 'curl --manual' for more information\n");
  }
  if (absl::Status status = ReadUrl(std::move(url), call); !status.ok()) return status;
  return call;
}

CommandResult CurlResult(const CurlCall& call, const CurlAnswer& answer) {
  CommandResult out;
  const auto fail = [&](int exit_code, const std::string& text) {
    out.exit_code = exit_code;
    if (!call.silent || call.show_errors) out.err += fmt::format("curl: ({}) {}\n", exit_code, text);
  };
  if (answer.code == 0) {
    if (answer.why == "client timeout") {
      fail(28, fmt::format("Operation timed out after {} milliseconds with 0 bytes received", call.max_time / 1ms));
    } else if (answer.why == "no such host") {
      fail(6, "Could not resolve host: " + call.host);
    } else if (answer.why.find("refused") != std::string_view::npos ||
               answer.why.find("nobody listens") != std::string_view::npos) {
      fail(7, fmt::format("Failed to connect to {} port {}: Connection refused", call.host, call.port));
    } else {
      fail(56, "Recv failure: Connection reset by peer");
    }
  } else if (call.fail && answer.code >= 400) {
    fail(22, fmt::format("The requested URL returned error: {}", answer.code));
  } else if (!call.to_nowhere) {
    if (call.include_head || call.only_head)
      out.out += fmt::format("{} {}\r\n\r\n", call.protocol == "http2" ? "HTTP/2" : "HTTP/1.1", answer.code);
    if (!call.only_head) out.out += answer.body;
  }
  out.out += absl::StrReplaceAll(call.write_out, {{"%{http_code}", fmt::format("{:03}", answer.code)},
                                                  {"%{response_code}", fmt::format("{:03}", answer.code)},
                                                  {"%{time_total}", fmt::format("{:.6f}", answer.seconds)},
                                                  {"\\n", "\n"},
                                                  {"\\t", "\t"}});
  return out;
}

}  // namespace wavetank::serve
