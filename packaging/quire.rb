# A formula for Homebrew: `brew install --HEAD ./packaging/quire.rb` builds it, `brew services start quire` runs it.
class Quire < Formula
  desc "Document database that speaks MongoDB's protocol and query language"
  homepage "https://github.com/quire-db/quire"
  license "Apache-2.0"
  head "https://github.com/quire-db/quire.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
  end

  service do
    run [opt_bin/"quire", "serve", "--create", "--dbpath", var/"quire", "--logFormat", "json"]
    keep_alive true
    error_log_path var/"log/quire.log"
  end

  test do
    assert_match "follows MongoDB", shell_output("#{bin}/quire --version")
  end
end
