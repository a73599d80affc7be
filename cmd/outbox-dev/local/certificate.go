package local

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// CertificateFile is the name that WriteCertificate gives to the file.
const CertificateFile = "certificate.pem"

// WriteCertificate writes the certificate, without its key, as PEM to a file of
// dir, which it makes, and returns the file's path.
func WriteCertificate(dir string, c *tls.Certificate) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the certificate's folder: %w", err)
	}
	file := filepath.Join(dir, CertificateFile)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	if err := os.WriteFile(file, block, 0o644); err != nil {
		return "", fmt.Errorf("write the certificate: %w", err)
	}
	return filepath.Abs(file)
}
