"""Private mixtures step by step: standardised rows, moving centres, components with covariances.

Every step is a release of joint moments; starts and what becomes of light centres are public.
"""
