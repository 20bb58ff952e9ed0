#include "core/agent/dns_message.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

constexpr uint16_t kSoa = 6, kOpt = 41;
constexpr size_t kHeader = 12;

// A label as zone files write it, so that a dot in it is told from one behind it. Go: miekg/dns, msg.go,
// UnpackDomainName
void AppendLabel(std::string_view label, std::string* out) {
  for (const char c : label) {
    const auto byte = static_cast<uint8_t>(c);
    if (std::string_view(". '@;()\"\\").find(c) != std::string_view::npos) {
      *out += {'\\', c};
    } else if (byte < ' ' || byte > '~') {
      *out += fmt::format("\\{:03}", byte);
    } else {
      out->push_back(c);
    }
  }
}

// Reads numbers and names; after the first thing that is not there it reads nothing any more.
class Cursor {
 public:
  explicit Cursor(std::string_view all) : all_(all) {}

  bool ok() const { return ok_; }
  uint16_t U16() {
    if (!Has(2)) return 0;
    const auto high = static_cast<uint8_t>(all_[at_]), low = static_cast<uint8_t>(all_[at_ + 1]);
    at_ += 2;
    return static_cast<uint16_t>(high << 8 | low);
  }
  uint32_t U32() {
    const uint32_t high = U16();
    return high << 16 | U16();
  }
  std::string_view Bytes(size_t n) {
    if (!Has(n)) return {};
    at_ += n;
    return all_.substr(at_ - n, n);
  }
  // Labels with dots behind them. Pointers lead backwards only, so that they end.
  std::string Name() {
    std::string out;
    size_t at = at_, bound = all_.size(), size = 0;
    bool jumped = false;
    while (ok_) {
      if (at >= bound) return Broken();
      const auto length = static_cast<uint8_t>(all_[at]);
      if ((length & 0xc0) == 0xc0) {
        if (at + 1 >= all_.size()) return Broken();
        const size_t to = static_cast<size_t>(length & 0x3f) << 8 | static_cast<uint8_t>(all_[at + 1]);
        if (!jumped) at_ = at + 2;
        jumped = true;
        if (to >= at) return Broken();
        bound = at;
        at = to;
        continue;
      }
      if (length > 63 || at + 1 + length > all_.size()) return Broken();
      if (length == 0) {
        if (!jumped) at_ = at + 1;
        return out.empty() ? "." : out;
      }
      AppendLabel(all_.substr(at + 1, length), &out);
      out.push_back('.');
      if ((size += 1 + length) > 255) return Broken();
      at += 1 + length;
    }
    return out;
  }

 private:
  bool Has(size_t n) {
    if (ok_ && all_.size() - at_ >= n) return true;
    ok_ = false;
    return false;
  }
  std::string Broken() {
    ok_ = false;
    return {};
  }

  std::string_view all_;
  size_t at_ = 0;
  bool ok_ = true;
};

void Put16(std::string& out, uint32_t value) {
  out.push_back(static_cast<char>(value >> 8 & 0xff));
  out.push_back(static_cast<char>(value & 0xff));
}
void Put32(std::string& out, uint32_t value) {
  Put16(out, value >> 16);
  Put16(out, value & 0xffff);
}
void PutLabel(std::string& out, std::string* label) {
  if (label->empty()) return;
  if (label->size() > 63) label->resize(63);
  out.push_back(static_cast<char>(label->size()));
  out += std::exchange(*label, {});
}
// Of a name as AppendLabel() writes its labels.
void PutName(std::string& out, std::string_view name) {
  const auto digit = [&](size_t at) { return at < name.size() && absl::ascii_isdigit(name[at]); };
  std::string label;
  for (size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '.') {
      PutLabel(out, &label);
    } else if (name[at] == '\\' && digit(at + 1) && digit(at + 2) && digit(at + 3)) {
      label.push_back(static_cast<char>((name[at + 1] - '0') * 100 + (name[at + 2] - '0') * 10 + name[at + 3] - '0'));
      at += 3;
    } else {
      if (name[at] == '\\' && at + 1 < name.size()) ++at;
      label.push_back(name[at]);
    }
  }
  PutLabel(out, &label);
  out.push_back('\0');
}

std::string Rdata(const DnsRecord& record) {
  std::string out;
  if (record.type == DnsType::kCname) {
    PutName(out, record.target);
    return out;
  }
  const uint64_t high = record.address.high(), low = record.address.low();
  if (record.type == DnsType::kA) {
    Put32(out, static_cast<uint32_t>(low));
    return out;
  }
  for (const uint64_t half : {high, low}) {
    Put32(out, static_cast<uint32_t>(half >> 32));
    Put32(out, static_cast<uint32_t>(half));
  }
  return out;
}

// As little as says how long nothing is there: of the question's name, servers and mailboxes of the root.
void PutStartOfAuthority(std::string& out, uint32_t seconds) {
  std::string data(2, '\0');
  for (const uint32_t value : {1U, 3600U, 600U, 86400U, seconds}) Put32(data, value);
  Put16(out, 0xc000 | kHeader);
  Put16(out, kSoa);
  Put16(out, 1);  // IN
  Put32(out, seconds);
  Put16(out, static_cast<uint32_t>(data.size()));
  out += data;
}

}  // namespace

absl::StatusOr<DnsQuery> ParseQuery(std::string_view message) {
  Cursor in(message);
  DnsQuery out;
  out.id = in.U16();
  const uint16_t flags = in.U16();
  const uint16_t questions = in.U16(), answers = in.U16(), authorities = in.U16(), additional = in.U16();
  if (!in.ok() || (flags & 0x8000) != 0) return absl::InvalidArgumentError("the message is no DNS query");
  out.recursion_desired = (flags & 0x0100) != 0;
  out.has_question = questions > 0;
  // More than one is allowed and never seen: the first counts.
  for (int i = 0; i < questions && in.ok(); ++i) {
    const std::string name = in.Name();
    const uint16_t type = in.U16(), klass = in.U16();
    if (i > 0) continue;
    out.name = name;
    out.type = type;
    out.klass = klass;
  }
  const int records = answers + authorities + additional;
  for (int i = 0; i < records && in.ok(); ++i) {
    in.Name();
    const uint16_t type = in.U16(), klass = in.U16();
    in.U32();
    in.Bytes(in.U16());
    if (type == kOpt && in.ok()) out.udp_size = std::max<size_t>(512, klass);
  }
  if (!in.ok()) return absl::InvalidArgumentError("the message is no DNS query");
  return out;
}

std::string MakeAnswer(const DnsQuery& query, const std::vector<DnsRecord>& records, DnsRcode code, size_t limit,
                       const DnsLife& life) {
  std::string question;
  if (query.has_question) {
    PutName(question, query.name);
    Put16(question, query.type);
    Put16(question, query.klass);
  }
  std::string body;
  uint32_t fitting = 0;
  for (const DnsRecord& record : records) {
    std::string one;
    // The name that was asked for stands in the question: two bytes point there.
    const bool same = absl::AsciiStrToLower(query.name) == record.name;
    if (same) {
      Put16(one, 0xc000 | kHeader);
    } else {
      PutName(one, record.name);
    }
    Put16(one, static_cast<uint16_t>(record.type));
    Put16(one, 1);  // IN
    Put32(one, life.records);
    const std::string data = Rdata(record);
    Put16(one, static_cast<uint32_t>(data.size()));
    one += data;
    if (kHeader + question.size() + body.size() + one.size() > limit) break;
    body += one;
    ++fitting;
  }
  uint32_t flags = 0x8000 | static_cast<uint32_t>(code);
  if (query.recursion_desired) flags |= 0x0100;
  if (code != DnsRcode::kServFail) flags |= 0x0400;
  if (fitting < records.size()) flags |= 0x0200;
  std::string out;
  Put16(out, query.id);
  Put16(out, flags);
  Put16(out, query.has_question ? 1 : 0);
  const bool nothing = records.empty() && code != DnsRcode::kServFail && life.nothing.has_value();
  if (nothing) PutStartOfAuthority(body, *life.nothing);
  Put16(out, fitting);
  Put16(out, nothing ? 1 : 0);
  Put16(out, 0);
  return out + question + body;
}

std::string MakeQuery(uint16_t id, std::string_view name, uint16_t type) {
  std::string out;
  Put16(out, id);
  Put16(out, 0x0100);
  Put16(out, 1);
  Put16(out, 0);
  Put32(out, 0);
  PutName(out, name);
  Put16(out, type);
  Put16(out, 1);
  return out;
}

absl::StatusOr<std::vector<DnsRecord>> ParseAnswer(std::string_view message) {
  const auto bad = [] { return absl::InvalidArgumentError("the message is no DNS answer"); };
  Cursor in(message);
  in.U16();
  const uint16_t flags = in.U16();
  const uint16_t questions = in.U16(), answers = in.U16();
  in.U32();
  if (!in.ok() || (flags & 0x8000) == 0) return bad();
  if ((flags & 0xf) == 3) return absl::NotFoundError("NXDOMAIN");
  if ((flags & 0xf) != 0) return absl::UnavailableError(fmt::format("the server failed (code {})", flags & 0xf));
  for (int i = 0; i < questions && in.ok(); ++i) {
    in.Name();
    in.U32();
  }
  std::vector<DnsRecord> out;
  for (int i = 0; i < answers && in.ok(); ++i) {
    DnsRecord record;
    record.name = in.Name();
    const uint16_t type = in.U16();
    in.U16();
    in.U32();
    const uint16_t size = in.U16();
    record.type = static_cast<DnsType>(type);
    if (record.type == DnsType::kCname) {
      record.target = in.Name();
    } else if (record.type == DnsType::kA && size == 4) {
      record.address = IpAddress::V4(in.U32());
    } else if (record.type == DnsType::kAaaa && size == 16) {
      const uint64_t a = in.U32(), b = in.U32(), c = in.U32(), d = in.U32();
      record.address = IpAddress::V6(a << 32 | b, c << 32 | d);
    } else {
      in.Bytes(size);
      continue;
    }
    if (in.ok()) out.push_back(std::move(record));
  }
  if (!in.ok()) return bad();
  return out;
}

}  // namespace wavetank::agent
